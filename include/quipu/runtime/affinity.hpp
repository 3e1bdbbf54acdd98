// How many threads this process may use: the affinity mask and the CPU quota of its cgroups.
//
// Siblings: thread_pool.hpp, test/runtime/affinity_test.cpp.
// std::thread::hardware_concurrency() knows the mask on some systems and the quota on none; a pool
// of 64 threads in a container that may use two is throttled for most of every scheduling period.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace quipu {

namespace detail {

/// The text of a small file, empty if it cannot be read. (Files of /proc have no size to ask for.)
inline std::string read_small_file(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
    char buffer[4096];
    std::size_t n;
    while (text.size() < (std::size_t{1} << 20) &&
           (n = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
      text.append(buffer, n);
    }
    std::fclose(file);
  }
  return text;
}

/// Takes the text up to `separator` (or the end) off the front of `rest`.
inline std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t at = (std::min)(rest.find(separator), rest.size());
  const std::string_view head = rest.substr(0, at);
  rest.remove_prefix((std::min)(at + 1, rest.size()));
  return head;
}

/// A decimal number at the start of the text, nothing if there is none ("max", "-1").
inline std::optional<double> leading_number(std::string_view text) {
  double value = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    value = value * 10 + (text[digits] - '0');
  }
  if (digits == 0) return std::nullopt;
  return value;
}

/// True if the comma-separated list has the word.
inline bool list_has(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (take_until(list, ',') == word) return true;
  }
  return false;
}

/// Where a hierarchy is mounted, and which of its folders that mount shows as its root.
struct CgroupMount {
  std::string point;
  std::string root;
};

/// The mount of cgroup v2, or of v1's cpu controller, from the text of /proc/self/mountinfo.
inline std::optional<CgroupMount> find_cgroup_mount(std::string_view mountinfo, bool v2) {
  while (!mountinfo.empty()) {
    std::string_view line = take_until(mountinfo, '\n');
    // id parent major:minor root point options [tags...] - type source super_options
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view tail = line.substr(dash + 3);
    const std::string_view type = take_until(tail, ' ');
    take_until(tail, ' ');
    if (v2 ? type != "cgroup2" : (type != "cgroup" || !list_has(tail, "cpu"))) continue;
    for (int skipped = 0; skipped < 3; ++skipped) take_until(line, ' ');
    const std::string_view root = take_until(line, ' ');
    const std::string_view point = take_until(line, ' ');
    return CgroupMount{std::string(point), std::string(root)};
  }
  return std::nullopt;
}

/// The process's folder within a hierarchy, from the text of /proc/self/cgroup.
inline std::optional<std::string> find_cgroup_folder(std::string_view cgroup, bool v2) {
  while (!cgroup.empty()) {
    std::string_view line = take_until(cgroup, '\n');  // number:controllers:/folder
    const std::string_view number = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    if (v2 ? (number == "0" && controllers.empty()) : list_has(controllers, "cpu")) {
      return std::string(line);
    }
  }
  return std::nullopt;
}

/// CPUs that one cgroup folder allows, nothing if it sets no limit.
inline std::optional<double> quota_of_folder(const std::string& folder, bool v2) {
  std::optional<double> quota;
  std::optional<double> period;
  if (v2) {
    const std::string text = read_small_file(folder + "/cpu.max");  // "max 100000", "150000 100000"
    std::string_view rest = text;
    quota = leading_number(take_until(rest, ' '));
    period = leading_number(rest);
  } else {
    quota = leading_number(read_small_file(folder + "/cpu.cfs_quota_us"));
    period = leading_number(read_small_file(folder + "/cpu.cfs_period_us"));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

/// The least limit of one hierarchy: the process's folder and all its parents up to the mount.
inline std::optional<double> quota_of_hierarchy(const std::string& system_root, bool v2) {
  const auto mount = find_cgroup_mount(read_small_file(system_root + "/proc/self/mountinfo"), v2);
  const auto folder = find_cgroup_folder(read_small_file(system_root + "/proc/self/cgroup"), v2);
  if (!mount || !folder) return std::nullopt;
  std::string inside = *folder;
  // In a container the mount shows the container's folder as its root.
  if (mount->root != "/") {
    const bool below = inside == mount->root || inside.starts_with(mount->root + "/");
    inside = below ? inside.substr(mount->root.size()) : std::string();
  }
  if (!inside.starts_with('/')) inside.clear();
  std::optional<double> least;
  for (;;) {
    while (!inside.empty() && inside.back() == '/') inside.pop_back();
    if (const auto limit = quota_of_folder(system_root + mount->point + inside, v2)) {
      least = least ? (std::min)(*least, *limit) : *limit;
    }
    if (inside.empty()) return least;
    inside.resize(inside.find_last_of('/'));  // it begins with one
  }
}

}  // namespace detail

/// CPUs that the cgroups of this process (v1 and v2) allow it per unit of time, such as 1.5;
/// nothing without a limit. `system_root` stands before every path that is read, for tests.
inline std::optional<double> cgroup_cpu_limit(const std::string& system_root = std::string()) {
  const auto v2 = detail::quota_of_hierarchy(system_root, true);
  const auto v1 = detail::quota_of_hierarchy(system_root, false);
  if (v1 && v2) return (std::min)(*v1, *v2);
  return v1 ? v1 : v2;
}

/// Numbers of the CPUs in the affinity mask of the calling thread; empty where the system has none.
inline std::vector<int> affinity_cpus() {
  std::vector<int> cpus;
#if defined(__linux__)
  // The kernel refuses a set smaller than its own; systems of more than 1024 CPUs exist.
  for (int capacity = 1024; capacity <= (1 << 18); capacity *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(capacity));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    CPU_ZERO_S(bytes, set);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; known && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (known) break;
  }
#endif
  return cpus;
}

/// Threads that this process may keep busy: the affinity mask, and the cgroup quota rounded down
/// (a thread beyond the quota only brings throttling, at the worst moment); at least 1.
inline std::size_t default_thread_count() {
  std::size_t count = affinity_cpus().size();
  if (count == 0) count = (std::max)(1u, std::thread::hardware_concurrency());
  if (const auto limit = cgroup_cpu_limit()) {
    if (*limit < static_cast<double>(count)) count = static_cast<std::size_t>(*limit);
  }
  return (std::max)(count, std::size_t{1});
}

}  // namespace quipu
