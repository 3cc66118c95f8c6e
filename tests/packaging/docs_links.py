#!/usr/bin/env python3
"""Checks that every document that a file mentions by its path under docs/ exists, that every link has a target, and
that docs/README.md lists every document.

    docs_links.py ROOT"""
import os
import re
import subprocess
import sys

root = sys.argv[1]
listed = subprocess.run(['git', '-C', root, 'ls-files'], capture_output=True, text=True)
files = listed.stdout.split('\n')[:-1] if listed.stdout else [
    os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names]
failures = []


def anchors(path):
    """The anchors that GitHub generates for a document's headings."""
    seen = {}
    text = re.sub(r'```.*?```', '', open(os.path.join(root, path), encoding='utf8').read(), flags=re.S)
    for heading in re.findall(r'^#+ +(.*?) *$', text, re.M):
        name = re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')
        count = seen.get(name, -1) + 1
        seen[name] = count
        yield name if count == 0 else f'{name}-{count}'


def check_links(path, text):
    for target in re.findall(r'\]\(([^)\s]+)\)', re.sub(r'```.*?```', '', text, flags=re.S)):
        if re.match(r'[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        place = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(os.path.join(root, place)):
            failures.append(f'{path}: link to {target}, which does not exist')
        elif anchor and place.endswith('.md') and anchor not in anchors(place):
            failures.append(f'{path}: link to {target}, which has no such heading')


documents = sorted(path for path in files if re.match(r'docs/.*\.md$', path) and os.path.exists(os.path.join(root, path)))
for path in files:
    if not os.path.isfile(os.path.join(root, path)) or re.search(r'\.(npy|npz|png|jpg|h5|pt|beton|bin|tar|gz)$', path):
        continue
    try:
        text = open(os.path.join(root, path), encoding='utf8').read()
    except UnicodeDecodeError:
        continue
    for name in set(re.findall(r'\bdocs/[\w/.-]+\.md\b', text)):
        if name not in documents:
            failures.append(f'{path}: mentions {name}, which does not exist')
    if path.endswith('.md'):
        check_links(path, text)
index = open(os.path.join(root, 'docs/README.md'), encoding='utf8').read()
for path in documents:
    if path != 'docs/README.md' and f']({path[len("docs/"):]})' not in index:
        failures.append(f'docs/README.md does not list {path}')
for failure in sorted(failures):
    print(failure)
if len(documents) < 10:
    failures.append('no documents found')
sys.exit(1 if failures else 0)
