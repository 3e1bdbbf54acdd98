#!/usr/bin/env python3
"""What the types of one model cost to compile.

    python3 check_budget.py COMPILER INCLUDE_DIR SOURCE...

Gated, because they are the same on each run: lines after preprocessing, headers of Boost, and peak
memory (200 MB). Time depends on what else the machine does, so the best of five is printed and not
judged, unless it is absurd (15 s).
"""
import os
import subprocess
import sys
import time

MOST_LINES = 32_000
MOST_BOOST_HEADERS = 110
MOST_MEGABYTES = 200
ABSURD_SECONDS = 15

compiler, include, source = sys.argv[1:4]
command = [compiler, "-std=c++20", f"-I{include}"]
lines = subprocess.run(command + ["-E", "-P", source], capture_output=True, text=True, check=True).stdout
lines = sum(1 for line in lines.split("\n") if line.strip())
makefile = subprocess.run(command + ["-M", source], capture_output=True, text=True, check=True).stdout
boost = sum(1 for word in makefile.split() if "/boost/" in word)

best_user = best_wall = float("inf")
peak = 0
for _ in range(5):
    begin = time.monotonic()
    child = os.posix_spawn(
        subprocess.run(["which", compiler], capture_output=True, text=True, check=True).stdout.strip(),
        command + ["-c", source, "-o", "/dev/null"], os.environ)
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{source} does not compile")
    best_user = min(best_user, usage.ru_utime)
    best_wall = min(best_wall, time.monotonic() - begin)
    peak = max(peak, usage.ru_maxrss)
peak_megabytes = peak / (1 << (20 if sys.platform == "darwin" else 10))

print(f"{compiler}: {best_user:.2f} s user, {best_wall:.2f} s wall (best of 5), {peak_megabytes:.0f} MB, "
      f"{lines} lines, {boost} headers of Boost")
for name, found, most in (("lines", lines, MOST_LINES), ("headers of Boost", boost, MOST_BOOST_HEADERS),
                          ("MB", peak_megabytes, MOST_MEGABYTES), ("s", best_user, ABSURD_SECONDS)):
    if found > most:
        sys.exit(f"{name}: {found:.0f}, {most} are allowed")
