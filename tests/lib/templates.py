"""templates.py -- Python of tests/doors/templates.t: random conversations, by transformers and by tokenize"""

import datetime
import glob
import json
import os
import random
import subprocess

from lib.chat import model, put, text_of

NUMBER = 200  # of conversations for a template
TEXTS = [
    '', 'Hi', '  padded  ', '\n\nlines\n', '{{ x }} {% if %}',
    'na\u00efve caf\u00e9 \u2013 \u201cquotes\u201d \u4e2d\u6587 \U0001f600 e\u0301',
    'a</think>b', '<think>\nplan\n</think>\n\nanswer', '<tool_response>x</tool_response>', 'tab\tand \\ "q" \'p\'',
    '\u00a0wide\u3000', '<<SYS>> in it', 'x' * 50,
]
TOOLS = [dict(type='function', function=dict(
    name='f', description='A "tool" <\u00e9>',
    parameters=dict(type='object', properties=dict(a=dict(type='integer')), required=['a'])))]


def conversation(dice):
    """Turns in order or not, with empty, missing and unusual contents, calls of tools, reasoning."""
    ordered, messages = dice.random() < 0.7, []
    if dice.random() < 0.4:
        messages.append(dict(role='system', content=dice.choice(TEXTS)))
    for i in range(dice.randint(1, 6)):
        role = ['user', 'assistant'][i % 2] if ordered else dice.choice(['user', 'assistant', 'system', 'tool'])
        messages.append(dict(role=role, content=dice.choice(TEXTS)))
    some = dice.choice(messages)
    kind = dice.random()
    if kind < 0.08:
        some['content'] = None
    elif kind < 0.16:
        del some['content']
    elif kind < 0.24:
        some['content'] = [dict(type='text', text=dice.choice(TEXTS)), dict(type='text', text='two')]
    elif kind < 0.32:
        some['reasoning_content'] = 'why'
    if dice.random() < 0.1:
        arguments = dice.choice([dict(a=1, b=[1.5, None, True], c={'\u00e9': '"'}), '{"a": 1}'])
        call = dict(id='call00001', type='function', function=dict(name='f', arguments=arguments))
        messages.append(dict(role='assistant', content=dice.choice(['', None, 'c']),
                             tool_calls=[call] * dice.randint(1, 2)))
        messages.append(dict(role='tool', content='42', tool_call_id='call00001'))
    return dict(messages=messages, tools=TOOLS) if dice.random() < 0.2 else dict(messages=messages)


def by_transformers(template, c):
    """The text, or None if the template raises."""
    from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

    day = datetime.datetime(2024, 2, 29)
    _compile_jinja_template(template).environment.globals['strftime_now'] = day.strftime
    try:
        return render_jinja_template([json.loads(json.dumps(c['messages']))], tools=c.get('tools'),
                                     chat_template=template, bos_token='<s>', eos_token='</s>')[0][0]
    except Exception:  # of the template: TemplateError, TypeError, UndefinedError, ...
        return None


def by_tokenize(conversations):
    """The texts, or the message if a conversation or the template is refused."""
    put('.', 'chats.jsonl', ''.join(json.dumps(c) + '\n' for c in conversations))
    run = subprocess.run('tokenize -q --chat --date 2024-02-29 --model m chats.jsonl -o out.h5'.split(),
                         capture_output=True, text=True)
    if run.returncode == 0:
        return text_of('out.h5')
    return run.stderr.strip()


def difference(template, conversations):
    """The first conversation that differs; equal: none."""
    wanted = [by_transformers(template, c) for c in conversations]
    kept = [(c, w) for c, w in zip(conversations, wanted) if w]
    got = by_tokenize([c for c, _ in kept]) if kept else []
    if isinstance(got, str):
        return len(wanted) - len(kept), got
    for (c, w), g in zip(kept, got):
        if w != g:
            return 0, f'{json.dumps(c)}: {g!r}, not {w!r}'
    refused = [c for c, w in zip(conversations, wanted) if w is None]
    for c in refused:
        g = by_tokenize([c])
        if not isinstance(g, str) or ': m: chat template:' not in g or g.endswith('is not supported'):
            return len(refused), f'{json.dumps(c)}: {g}'
    return len(refused), 'equal'


def compare(folder):
    for path in sorted(glob.glob(os.path.join(folder, '*.jinja'))):
        name = os.path.basename(path)[:-6]
        dice = random.Random(name)
        with open(path, newline='') as f:
            template = f.read()
        model('m', template)
        refused, result = difference(template, [conversation(dice) for _ in range(NUMBER)])
        print(name, NUMBER, refused, result.replace('\n', ' ').replace('\t', ' '), sep='\t')
