"""Runs the code blocks of a document in the current folder, as a reader would.

    docs_run.py DOCUMENT COMPILE

A YAML block whose first line is `# NAME.yaml` is written to that file. Every YAML block must be a config that
--show-config accepts, or a specification for --make; missing sections are added. Shell blocks are run in order, C
programs are saved as program.c and compiled with the command COMPILE, Python programs are run. Two comments control
this:
    <!-- run: COMMAND -->       on its own line: a command that readers do not see, for test data
    <!-- not run: WHY -->       before a block: skips the block and prints why
The exit status is 1 after a block that fails."""
import re
import subprocess
import sys

document, compile_command = sys.argv[1:]
failures = 0


def shell(text, what):
    """Runs a script; reports it if it fails."""
    global failures
    ended = subprocess.run(['bash', '-euo', 'pipefail', '-c', text], capture_output=True, text=True, check=False)
    print(ended.stdout, end='')
    if ended.returncode:
        failures += 1
        print(f'FAILED: {what}: exit status {ended.returncode}\n{ended.stderr[-2000:]}', file=sys.stderr)


def check_config(text, what):
    """Checks a config, or some of its sections: every key must be known to the program."""
    sections = set(re.findall(r'^(\w+):', text, re.M))
    job = sections & {'prep', 'output', 'stats'}
    if 'make' in sections:
        with open('block.yaml', 'w', encoding='utf8') as out:
            out.write(text)
        return shell('loadbench --make block.yaml', what)
    if not sections & {'dataset', 'datasets'}:
        text += '\ndataset: {fields: {x: {path: x.npy}, image: {path: images, source: {name: image}}, label: {path: x.npy}}}\n'
    elif 'fields' not in text:
        text += '  fields: {x: {path: x.npy}}\n'
    if job and 'output' not in sections and not re.search(r'^stats:.*path:', text, re.M):
        text += '\noutput: {path: out.npy}\n'
    with open('block.yaml', 'w', encoding='utf8') as out:
        out.write(text)
    return shell(('stoker prep' if job else 'loadbench') + ' block.yaml --show-config >/dev/null', what)


blocks = 0
left_out = None
lines = iter(enumerate(open(document, encoding='utf8'), 1))
for number, line in lines:
    hidden = re.fullmatch(r'<!-- (not run|run): (.*) -->\n', line)
    if hidden and hidden[1] == 'run':
        shell(hidden[2], f'{document}:{number}')
    elif hidden:
        left_out = hidden[2]
    if not line.startswith('```'):
        if line.strip() and not hidden:
            left_out = None
        continue
    language = line[3:].strip()
    text = ''
    for _, block_line in lines:
        if block_line.startswith('```'):
            break
        text += block_line
    what = f'{document}:{number}'
    if left_out and language:
        print(f'not run: {what}: {left_out}')
    elif language == 'yaml':
        named = re.match(r'# ([\w-]+\.yaml)', text)
        if named:
            with open(named[1], 'w', encoding='utf8') as out:
                out.write(text)
        check_config(text, what)
    elif language == 'sh':
        shell(text, what)
    elif language == 'c':
        with open('program.c', 'w', encoding='utf8') as out:
            out.write(text)
        shell(f'{compile_command} -o program && ./program', what)
    elif language == 'python':
        with open('program.py', 'w', encoding='utf8') as out:
            out.write(text)
        shell('python3 program.py', what)
    blocks += language in ('yaml', 'sh', 'c', 'python')
    left_out = None
print(f'{document}: {blocks} blocks')
sys.exit(1 if failures else 0)
