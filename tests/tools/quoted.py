"""Code in the pages that names its file (<!-- from FILE --> before the block) stands in that file, word for word; a numbered page shows some. usage: quoted.py project-root"""
import glob
import os
import re
import sys

root = sys.argv[1]
wrong = 0
for page in ["README.md", *glob.glob("docs/*.md", root_dir=root)]:
    text = open(os.path.join(root, page), encoding="utf-8").read()
    for file, code in re.findall(r"<!-- from (\S+) -->\s*```\w*\n(.*?)```", text, re.S):
        path = os.path.join(root, file)
        if not os.path.exists(path) or code.strip() not in open(path, encoding="utf-8").read():
            print(f"{page}: this is not in {file}:\n{code}")
            wrong = 1
    if re.match(r"docs/\d\d-", page) and "<!-- from " not in text:
        print(f"{page}: it shows no code of a test")
        wrong = 1
    for link in re.findall(r"\]\(([^)#:]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)):
        if not os.path.exists(os.path.join(root, os.path.dirname(page), link)):
            print(f"{page}: {link} does not exist")
            wrong = 1
sys.exit(wrong)
