"""Sums meson's test records: every doctest case counts as one, every other test as one. Ends with `N passed, N failed`."""
import json
import os
import re
import sys

passed = failed = 0
for record in sys.argv[1:]:
    if not os.path.exists(record):
        print(f"no test ran: {record} is missing")
        failed += 1
        continue
    for line in open(record, encoding="utf-8", errors="replace"):
        test = json.loads(line)
        cases = re.findall(r"\[doctest\] test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed", test.get("stdout") or "")
        good = test["result"] in ("OK", "EXPECTEDFAIL")
        if test["result"] == "SKIP":
            why = (test.get("stdout") or "").strip().split("\n")[-1]
            print(f"skipped: {test['name']}" + (f": {why.removeprefix('skipped: ')}" if why else ""))
        elif cases:
            passed += int(cases[-1][0])
            failed += int(cases[-1][1]) or (0 if good else 1)  # cases passed, but the program did not end well
        else:
            passed += good
            failed += not good
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0 or passed == 0)
