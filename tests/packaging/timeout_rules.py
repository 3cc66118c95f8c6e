#!/usr/bin/env python3
"""Checks that every ctest has a timeout: SECONDS, or a longer one set by a CMake line whose comment says why.

usage: timeout_rules.py BUILD-FOLDER SECONDS"""
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    build, usual = sys.argv[1], float(sys.argv[2])
    wrong, others = [], set()
    for path in glob.glob(os.path.join(ROOT, "tests", "**", "*.cmake"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for seconds in re.findall(r"\bTIMEOUT (\d+)", line):
                    others.add(float(seconds))
                    if "#" not in line:
                        wrong.append("%s:%d: TIMEOUT %s without a comment that says why" % (path, number, seconds))
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, check=True).stdout
    tests = json.loads(listing)["tests"]
    for test in tests:
        timeout = next((p["value"] for p in test.get("properties", []) if p["name"] == "TIMEOUT"), None)
        if timeout != usual and timeout not in others:
            wrong.append("%s: its timeout is %s, expected %g" % (test["name"], timeout, usual))
    print("\n".join(wrong) or "%d tests" % len(tests))
    return 1 if wrong or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
