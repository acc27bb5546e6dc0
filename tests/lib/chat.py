"""chat.py -- Python of tests/chat.t: models with chat templates; templates that use every construct, by jinja2"""

import datetime
import json
import os
import random
import re
import shutil
import subprocess

import h5py
import numpy as np

from lib.checkpoint import save

# The variables that templates of these tests read, apart from messages.
TOKENS = dict(bos_token='<s>', eos_token=dict(content='</s>', lstrip=False), pad_token=None)
MESSAGES = [
    dict(role='system', content='  Be brief.\n', n=3, big=1 << 40, list=[3, 1, 2, 'x', None, True, 1.5]),
    dict(role='user', content='Stra\u00dfe \u00c9t\u00e9 \u039f\u0394\u039f\u03a3 \u01c6 \ufb01n \U0001f600',
         tags=['a', 'B']),
    dict(role='assistant', content='', d={'a': 1, 'b c': [1, {'q': "it's \"x\"\n\u200b"}], 'items': 5, 'k': None}),
    dict(role='user', content='\u2003 pad\u3000\t\n', f=-0.1, yes=True, no=False, empty=[], none=None, e={},
         q='nl\n tab\t back\\ bell\a del\x7f nb\u00a0 z\u200b \x01\x1f\0 e\u00e9 \U0001F600 \U000e0001',
         reals=[1e16, 1e15, 1e-5, 123456789012345678.0, 0.1, 1e300]),
]

# Expressions: s, u, a and p are the four messages.
EXPRESSIONS = r"""
bos_token + eos_token ~ pad_token ;; pad_token is defined ;; tools is defined ;; tools is none ;;
documents is none ;; add_generation_prompt ;; messages | length ;; u.content ;; undefined_name ;; none ;;
true ;; True ;; false ;; None ;; 1 + 2 * 3 - 4 ;; 7 // 2 ;; -7 // 2 ;; 7 // -2 ;; 7 % 3 ;; -7 % 3 ;; 7 % -3 ;;
True + 1 ;; -True ;; - 2 ;; -u.n if u.n else 9 ;; s.big * 1000 ;; s.big // 7 ;; 'a' + 'b' ;; [1] + [2] ;;
'a' < 'b' ;; 1 == true ;; 'a' == 1 ;; none == false ;; 'b' in 'abc' ;; '' in '' ;; 'a' in a.d ;;
'z' not in a.d ;; none in [none] ;; 'x' in undefined_name ;; undefined_name == other_undefined ;; not 0 ;;
not 'x' ;; not not [] ;; 0 or 'y' ;; 'x' and '' ;; 1 and 2 ;; 'a' if true else 'b' ;; 'a' if false ;;
'a' if false else 'b' if false else 'c' ;; (1 if 0) is defined ;; s.content[0] ;; s['content'][2:4] ;;
u.content[0:6] ;; u.content[::-1] ;; u.content[-1] ;; u.content[1:-1:2] ;; u.content[99] ;; s.list[0] ;;
s.list[-1] ;; s.list[9] ;; s.list[1:3] ;; s.list[::-2] ;; s.list[:-1] ;; s.list[-100:100] ;; s.list[none:2] ;;
messages[1:] | length ;; messages[0].role ;; messages[true].role ;; a.d['b c'][1].q ;; a.d.b ;; a.d['zz'] ;;
a.d['items'] ;; {'a': {'b': 2}}.a.b ;; {'a': 1, 'a': 2} ;; [] ;; {} ;; [1, [2, ['x']], {'k': none}] ;; a.d ;;
p.f ;; p ;; s.list ;; "it's" ~ ["it's", 'say "x"', "both ' and \""] ;; "\'" ;; '\"' ;; s.content.strip() ;;
p.content.strip() ;; p.content.lstrip() ;; p.content.rstrip() ;; 'xxabcxx'.strip('xa') ;; 'abc'.strip(none) ;;
'a-b'.rstrip('-b') ;; 'a,b,,c'.split(',') ;; 'a,b,c'.split(',', 1) ;; 'a,b'.split(',', maxsplit=0) ;;
''.split(',') ;; 'aXbXc'.split('X')[-1] ;; 'abc'.startswith('ab') ;; 'abc'.endswith('bc') ;;
'abc'.endswith('') ;; 'aaa'.replace('a', 'b') ;; 'ab'.replace('b', '') ;; "they're o'neil x1y".title() ;;
a.d.get('a') ;; a.d.get('zz') ;; a.d.get('zz', 0) ;; a.d.items() | length ;; s.content | trim ;; 5 | trim ;;
'xax' | trim('x') ;; none | trim ;; undefined_name | trim ;; u.content | length ;; a.d | length ;;
[] | length ;; undefined_name | length ;; [1, 'a', none] | join ;; [1, 2] | join(', ') ;; 'abc' | join('-') ;;
a.d | join(',') ;; undefined_name | join(',') ;; range(3) | join(' ') ;; undefined_name | default('d') ;;
'' | default('d') ;; '' | default('d', true) ;; none | default('d', boolean=true) ;; x.y | default if x ;;
a.d | tojson ;; s | tojson ;; s.list | tojson(indent=2) ;; a.d | tojson(indent=4) ;; [] | tojson(indent=1) ;;
{} | tojson(indent=1) ;; 5 | upper ;; none | lower ;; [1] | string ;; '12' | int ;; true | int ;;
[1, 2] | first ;; [] | first ;; 'ab' | first ;; a.d | first ;; [1, 2] | last ;; [] | last ;; 'ab' | last ;;
a.d | last ;; undefined_name | first ;; 'ab' | list ;; a.d | list ;; range(2) | list ;;
undefined_name | list ;; undefined_name | items | list ;; [1, 2] | reverse | list ;; a.d | reverse | list ;;
range(3) | reverse | list ;; messages | map(attribute='role') | list ;; ['a', 'b'] | map('upper') | join ;;
[' a '] | map('trim') | list ;; messages | selectattr('role', 'equalto', 'user') | list | length ;;
messages | selectattr('n') | list | length ;;
messages | selectattr('n', 'defined') | map(attribute='role') | join ;; [1, none] | reject('none') | list ;;
['a', 'b'] | reject('equalto', 'a') | join ;; 'aXa' | replace('a', 'b') ;; ([1, 2, 3] | reverse) | first ;;
([1, 2] | map('string') | list)[0] ;; x is defined ;; x is not defined ;; none is none ;; '' is none ;;
'a' is string ;; 1 is string ;; a.d is mapping ;; [] is mapping ;; [] is iterable ;; 1 is iterable ;;
x is iterable ;; a.d is iterable ;; true is true ;; 1 is true ;; false is false ;; 0 is false ;;
none is sameas none ;; true is sameas(true) ;; 1 is sameas true ;; not 'a' is string ;; range(5) | list ;;
range(1, 7, 2) | list ;; range(3, 0, -1) | list ;; range(0) | list ;; range(4)[1] ;; range(3) | length ;;
2 in range(3) ;; namespace(a=1).a ;; namespace(a=1).b ;; namespace(a=1)['a'] ;; strftime_now is defined ;;
raise_exception is defined ;; strftime_now('%d %b %Y') ;; strftime_now('%Y-%m-%d %A %j %H:%M:%S %U %%') ;;
'{' ~ '{' ;; {'a': '}}'}.a ;; '%}' ;; '{#' ;; '<b>' | safe ;; 5 | safe ;; s . content ;; s [ 'role' ] ;;
( 1 ) ;; [1,] ;; {'a': 1,} ;; 'éé😀a'.lstrip('é') ;; (a.d.items() | list)[1][0] ;; (a.d | items | list)[0][1] ;;
(a.d | items | first)[0] ;; u | tojson ;; '<é & "/\\' | tojson ;; [u, p] ;; 'abé😀' | reverse ;; p.q ;;
p.q | tojson ;; [p.q] | tojson(indent=0) ;; p.reals ;; p.reals | tojson ;; p.reals[0] ;; p.reals[1] ;;
p.reals[2] ;; '012' | int ;; messages | rejectattr('role', 'equalto', 'user') | list | length ;;
'a' is equalto 'a' ;; u.content . strip ( ) ;; 1 is none or 1 ;; 'a"b' ~ 'c\'d' ~ "e\nf\tg\\h\ri" ;;
'a' ~ 1 + 2 ~ 'b' ;; 2 * 3 ~ 4 ;; 1 ~ 2 ;; not 1 == 2 ;; none | map('upper') | list ;; 0 | reject | list ;;
{u.role: 1, 'b': 2, bos_token: 3} ;; (1) ;; [(1)] ;; 1 not in [2] and 3 not  in [4] ;; 1 if 2 if 0 else 3 ;;
-3 | int ;; 'b' | replace('b', 'c') | upper ;; -s.n ~ -2 ;; {'a': 1} == {'a': 2} ;; [1] == 1 ;; '' | list ;;
a.d | map('upper') | join(',') ;; ['b', none] | map('default', 'z') | list ;;
['abc'] | map('trim', 'a') | first ;; p.f == p.reals[4] ;; p.f in [1, p.f] ;; 1 in [true] ;;
[1, true] == [true, 1] ;; p.reals[3] == 123456789012345678 ;; 1 < 2 and 2 < 3 ;; 'aBc x1Y'.upper() ;;
'aBc x1Y' | lower ;; 'a b c '.split(' ', 1) ;;
[true, p.reals[4]] | join(0) ;; s.list[6] | string ;;
'a' ~ 1 ~ none ~ true ~ s.list[6] ~ [1, 'b'] ~ undefined_name ;; [1] == 'a' ;; {'a': 1} == {'a': true} ;;
messages[1:] == messages[:0:-1] | reverse | list ;; s.role.content is defined
"""

# Statements, and white space around tags.
STATEMENTS = r"""
{% for m in messages %}{{ loop.index }}/{{ loop.length }} {{ m.role }}{{ ', ' if not loop.last }}{% endfor %}
{% for m in messages if m.role == 'user' %}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{% endfor %}
{% for m in messages if m.role == 'user' %}{{ loop.revindex }}{{ loop.revindex0 }}{% endfor %}
{% for k, v in messages[2].d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in messages[2].d | items if v %}{{ k }}={{ v }}{{ loop.last }};{% endfor %}
{% for a, b in [[1, 2], 'xy'] %}{{ a }}{{ b }}{% endfor %}
{% for x in [] %}{{ x }}{% endfor %}{% for x in [1] %}{{ x }}{% endfor %}
{% for c in 'aé😀' %}[{{ c }}]{% endfor %}{% for k in messages[2].d %}({{ k }}){% endfor %}
{% for x in undefined_name %}never{% endfor %}
{% for x in range(3) %}{{ x }}{{ loop['index'] }}{% endfor %}
{% for x in [1, 2] %}{% for y in [3, 4] %}{{ loop.index }}{{ x }}{{ y }}{% endfor %}{{ loop.index }}{% endfor %}
{% set v = 'outer' %}{% for x in [1, 2] %}{{ v }}{% set v = 'inner' %}{{ v }}{% endfor %}{{ v }}
{% set v = 1 %}{% if true %}{% set v = 2 %}{% endif %}{{ v }}
{% for x in [1] %}{% if x %}{% set w = 3 %}{% endif %}{{ w }}{% endfor %}{{ w }}
{% set ns = namespace(n=0, last='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.last = m.role %}
{% endfor %}{{ ns.n }}{{ ns.last }}
{% for x in [1, 2, 3, 4] if x != 2 %}{{ loop.index }}{{ loop.length }}{{ loop.last }};{% endfor %}
{% if false %}a{% elif 0 %}b{% elif [] %}c{% elif 'x' %}d{% else %}e{% endif %}{% if none %}a{% else %}b{% endif %}
{% set messages = messages[1:] %}{{ messages | length }}
{% for tool in [1] %}{% set tool = tool + 1 %}{{ tool }}{% endfor %}
{% set x = [1, 2] %}{% set x = x + [3] %}{{ x }}{% set y = none %}{{ y is sameas none }}
{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{% set ns.y = [ns] %}deep
{{ '{{' }} { { } } {% if true %}{ % }{% endif %} # no comment
a {#- comment -#} b {# comment #} c {#- x -#}


  {% if true %}
    indented
  {% endif %}
	{% set z = 1 %}   
  x {% if true %} y
  {%- if true -%}   z   {%- endif -%}   
  {% endif %}   w

  {%+ if true %}kept  {% endif +%}
  {%+ set q = 1 -%} after

{{- 'a' -}}   
   {{ 'b' }}
{{ 'c' }}
   {#- c -#}   d
   {# c #}   
   {# c +#}
e
{%- for x in [1, 2] %}

  {{ x }}

{%- endfor %}  
{% for x in [1, 2] -%}
  {{ x }}
{% endfor +%}
  end  
"""

RAISING = r"""
{} + {} ;; [1] - [2] ;; 'a' - 'b' ;; 'a' % 2 + 'b' ;; x.y.z ;; messages[0].x.y ;; none + 1 ;;
(messages | map('trim') | length) ;; x[0] ;; x['a'] ;; none < none ;; 'x' in none ;; x + x ;;
undefined_name.x ;; 1 + 2 * 3 ~ 4 ;; undefined_name['x'] ;; undefined_name + 'a' ;; 'a' + undefined_name ;;
'a' + 1 ;; 1 + 'a' ;; none + 'a' ;; [1] + 'a' ;; 1 < 'a' ;; none < 1 ;; {} < {} ;; undefined_name < 1 ;;
1 // 0 ;; 1 % 0 ;; 1 in 'abc' ;; 1 in 5 ;; [] in {} ;; -'a' ;; -undefined_name ;; none | length ;; 5 | length ;;
5 | list ;; none | join ;; none | first ;; (1 | list) ;; 'a'.split('') ;; 'a'.replace('a') ;;
'a'.replace(1, 2) ;; 'a'.strip(1) ;; 'a'.startswith(1) ;; 'a'.endswith(['a']) ;; 'a'.upper(1) ;; 'a'.split(1) ;;
messages[::0] ;; messages['a':] ;; undefined_name[1:] ;; messages[0][1:] ;; messages[0].get() ;;
messages[0].get([]) ;; messages[0].items(1) ;; raise_exception('no') ;; raise_exception() ;; range('a') ;;
range(1, 2, 0) ;; range(200000) ;; range() ;; range(1.5) ;; undefined_name | tojson ;; undefined_name | int ;;
([1] | map('upper') | length) ;; 5 | items | list ;; [1] | selectattr | list ;; [1] | map | list ;;
'a' | default(1, 2, 3) ;; 'a' | trim(1) ;; 'a' | replace('b') ;;
strftime_now() ;; strftime_now(1) ;; [1] | join(1, 2, 3) ;; ([1] | reverse | last)
"""
RAISING_STATEMENTS = r"""
{% for a, b in [[1]] %}{% endfor %}
{% for a in 5 %}{% endfor %}
{% for a in none %}{% endfor %}
{% set x = 1 %}{% set x.y = 2 %}
{% set undefined_name.y = 2 %}
{% for m in messages %}{{ raise_exception('Roles of ' + m.role) }}{% endfor %}
"""

# What is refused by name and line when the template is read.
REFUSED = [
    ("x\n{% macro f() %}{% endmacro %}", "2: the statement 'macro' is not supported"),
    ("{% generation %}{% endgeneration %}", "1: the statement 'generation' is not supported"),
    ("{% for x in [1] %}{% break %}{% endfor %}", "1: the statement 'break' is not supported"),
    ("{% raw %}{{ x }}{% endraw %}", "1: the statement 'raw' is not supported"),
    ("\n\n{% include 'a' %}", "3: the statement 'include' is not supported"),
    ("{% set x %}a{% endset %}", "1: '%' is not supported here, expected = "),
    ("{% set a, b = 1, 2 %}", "1: ',' is not supported here, expected = "),
    ("{% for x in y recursive %}{% endfor %}", "1: 'recursive' is not supported here, expected %}"),
    ("{{ a\n | b\n | sort }}", "2: the filter 'b' is not supported"),
    ("{{ x is divisibleby(3) }}", "1: the test 'divisibleby' is not supported"),
    ("{{ x.format(1) }}", "1: the method 'format' is not supported"),
    ("{{ lipsum() }}", "1: the function 'lipsum' is not supported"),
    ("{{ undefined_name() }}", "1: the function 'undefined_name' is not supported"),
    ("{{ f(1) }}", "1: the function 'f' is not supported"),
    ("{{ 2 ** 3 }}", "1: '\\*' is not supported here"),
    ("{{ f(*x) }}", "the function 'f'"),
    ("{{ range(*x) }}", "1: '\\*' is not supported here, expected an expression"),
    ("{{ (x | safe) + 'a' }}", "1: the filter 'safe' is supported at the end of an output only"),
    ("{{ '\\N{DASH}' }}", "1: this escape in a string is not supported, expected"),
    ("{{ 'x }}", "1: a string has no end"),
    ("{{ x", "1: the template ends within a tag, expected }}"),
    ("a\n{% if x", "2: the template ends within a tag, expected %}"),
    ("{# x", "1: a comment has no end"),
    ("{% if x %}\n{% for y in x %}\n", "a block has no end, expected 'endfor'"),
    ("{% if x %}", "a block has no end, expected 'endif'"),
    ("{% endif %}", "1: the statement 'endif' is not supported"),
    ("{{ }}", "1: '}' is not supported here, expected an expression"),
    ("{{ (1 }}", "1: '}' is not supported here, expected \\)"),
    ("{{ (1", "1: the template ends within a tag"),
    ("{{ 1) }}", "1: '\\)' is not supported here, expected }}"),
    ("{{ 0x10 }}", "1: a number is not in plain decimal digits"),
    ("{{ 99999999999999999999 }}", "1: a number is not in plain decimal digits"),
    ("{{ caf\u00e9 }}", "1: 'é' is not supported here"),
    ("{{ x ? y }}", "1: '\\?' is not supported here"),
    ("{{ " + "(" * 300 + "1" + ")" * 300 + " }}", "1: is nested in more than 200 levels"),
    ("{{ " + "-" * 300 + "1 }}", "1: is nested in more than 200 levels"),
    ("{% if x %}" * 300 + "{% endif %}" * 300, "1: is nested in more than 200 levels"),
    ("{{ " + "[" * 300 + "]" * 300 + " }}", "1: is nested in more than 200 levels"),
    ("{{ 'x'.join([1]) }}", "1: the method 'join' is not supported"),
    ("{% for x in [1] %}{% else %}{% endfor %}", "1: the statement 'else' is not supported"),
    ("{{ 'x' | d('y') }}", "1: the filter 'd' is not supported"),
    ("{{ 1 / 2 }}", "1: '/' is not supported here, expected }}"),
    ("{{ x is integer }}", "1: the test 'integer' is not supported"),
    ("{{ 1 is sameas }}", "1: '}' is not supported here, expected an expression"),
    ("{{ 'x'() }}", "1: '\\(' is not supported here, expected }}"),
    ("{{ x | tojson(sort_keys=true) }}", "1: tojson: the argument sort_keys is not expected"),
    ("{{ x | join(',', attribute='y') }}", "1: join: the argument attribute is not expected"),
    ("{{ x.replace('a', 'b', 1) }}", "1: replace: the argument after the last is not expected"),
    ("{{ 1 < 2 < 3 }}", "1: '<' is not supported here, expected }}"),
    ("{{ (1, 2) }}", "1: ',' is not supported here, expected \\)"),
    ("{{ 0.5 }}", "1: a number is not in plain decimal digits, 18 at most, without a fraction"),
    ("{{ x.keys() }}", "1: the method 'keys' is not supported"),
    ("{{ x | select }}", "1: the filter 'select' is not supported"),
    ("{{ x is number }}", "1: the test 'number' is not supported"),
    ("{{ namespace(1) }}", "1: '\\)' is not supported here, expected ="),
    ("{% for (a, b) in x %}{% endfor %}", "1: '\\(' is not supported here, expected the name of a variable"),
    ("{{ 'a' 'b' }}", "1: '.' is not supported here"),
    ("{{ '\\x41' }}", "1: this escape in a string is not supported"),
    ("{{ 1e3 }}", "1: a number is not in plain decimal digits"),
    ("{{ x.0 }}", "1: '0' is not supported here, expected a name"),
    ("{{ +1 }}", "1: '\\+' is not supported here"),
    ("{% for loop in [1] %}{% endfor %}", "1: 'loop' cannot be the variable of a loop"),
]
# What is refused when it is reached, since jinja2 prints what depends on its version, or takes without end.
STOPPED = [
    ("{{ range(3) }}", "1: a range or a part of items\\(\\) cannot be printed"),
    ("{{ [1] | map('string') }}", "1: an iterator cannot be printed"),
    ("{{ namespace() }}", "1: a namespace cannot be printed"),
    ("{{ messages[2].d.items() | list }}", "1: a range or a part of items\\(\\) cannot be printed"),
    ("{% set n = namespace(x=1) %}{% for m in messages if n.x %}{% endfor %}",
     "1: a namespace in the condition of a loop is not supported"),
    ("{{ 'x'['__class__'] }}{{ x.__class__ }}", "1: the attribute '__class__' of a text is not supported"),
    ("{{ messages[2].d.__class__ }}", "1: the attribute '__class__' of a dict is not supported"),
    ("{{ [1] < [2] }}", "1: a list and a list have no order here"),
    ("{{ {1: 2} }}", "1: the key of a dict is a whole number"),
    ("{{ 'ab'.replace('', '-') }}", "1: replace: the argument 1 is empty, expected a text to look for"),
    ("{{ messages | map(attribute='a.b') | list }}", "1: map: an attribute with dots or digits is not supported"),
    ("{{ 1 | tojson(true) }}", "1: tojson: the argument 1 is true or false, expected none"),
    ("{{ 1" + " + 1" * 300 + " }}", "1: is nested in more than 200 levels"),
    ("{{ messages[0].get }}", "1: the attribute 'get' of a dict is not supported"),
    ("{{ 'x'.index }}", "1: the attribute 'index' of a text is not supported"),
    ("{{ messages[0].pop }}", "1: the attribute 'pop' of a dict is not supported"),
    ("{{ '%s' % 'a' }}", "1: '%' is applied to a text"),
    ("{{ 'a' is sameas 'a' }}", "1: sameas a text is not supported, expected true, false or none"),
    ("{{ 900000000000000000 * 11 }}", "1: a number needs more than 64 bits"),
    ("{{ -900000000000000000 * 11 }}", "1: a number needs more than 64 bits"),
    ("{% for x in [1] %}{{ loop.cycle('a') if false }}{{ loop.changed }}{% endfor %}", "the method 'cycle'"),
    ("{% for x in [1] %}{{ loop.changed }}{% endfor %}", "1: the attribute 'changed' of a loop is not supported"),
    ("{% set ns = namespace() %}{% set ns._x = 1 %}{{ ns._x }}",
     "1: the attribute '_x' of a namespace is not supported"),
    ("{% for a in range(90000) %}\n{% for b in range(90000) %}\n{% set c = 1 %}{% endfor %}{% endfor %}",
     "[23]: the template needs more than 20000000 steps: it may have no end"),
    ("{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
     "1: the template needs more than 20000000 steps"),
    ("{{ 'ab' * 9 }}", "1: '\\*' is applied to a text"),
    ("{% set ns = namespace(x=[]) %}{% for i in range(200) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
     "1: a value is nested in more than 200 levels"),
    ("{{ [namespace()] }}", "1: a namespace cannot be printed"),
    ("{{ 'stra\u00dfe'.upper() }}", "1: upper of '\u00df' is not supported"),
    ("{{ messages[1].content | lower }}", "1: lower of '\u00df' is not supported"),
    ("{{ '\u00e9'.title() }}", "1: title of '\u00e9' is not supported"),
    ("{{ ' a b '.split() }}", "1: split: the argument 1 is missing"),
    ("{{ ' a b '.split(none) }}", "1: split: the argument 1 is none, expected a text"),
    ("{{ 'a'.replace('a') }}", "1: replace: the argument 2 is missing"),
    ("{{ '1.5' | int }}", "1: the filter int of this text is not supported"),
    ("{{ 'x' | int }}", "1: the filter int of this text is not supported"),
    ("{{ messages[3].f * 3 }}", "1: '\\*' is applied to a number"),
    ("{{ 2 * messages[3].f }}", "1: \\*: the argument 1 is a number, expected a whole number"),
    ("{{ messages[3].f < 3 }}", "1: a number and a whole number have no order here"),
    ("{% for x in [1] %}{{ loop.previtem }}{% endfor %}", "1: the attribute 'previtem' of a loop is not supported"),
    ("{{ [] is sameas [] }}", "1: sameas a list is not supported, expected true, false or none"),
    ("{{ 5['x'] }}", "1: the attribute 'x' of a whole number is not supported"),
    ("{% set a = namespace(x=[]) %}{% set b = namespace(x=[]) %}{% for i in range(900) %}{% set a.x = [a.x] %}"
     "{% set b.x = [b.x] %}{% endfor %}{{ a.x == b.x }}", "1: is nested in more than 200 levels"),
]


def cases(table):
    return [c.strip() for c in table.split(';;')]


def environment():
    """That of transformers: the filter tojson and two functions are its own."""
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message):
        raise jinja2.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    e = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    e.filters['tojson'] = tojson
    e.globals['raise_exception'] = raise_exception
    e.globals['strftime_now'] = lambda format: datetime.datetime(2024, 2, 29).strftime(format)
    return e


def variables(messages):
    return dict(messages=messages, tools=None, documents=None, add_generation_prompt=False, bos_token='<s>',
                eos_token='</s>')


PARTS = '{% set s = messages[0] %}{% set u = messages[1] %}{% set a = messages[2] %}{% set p = messages[3] %}'


def model(path, template=None, **config):
    """Writes a folder whose tokens are bytes, <s>, </s> and <|x|>, so that ids are as good as a text."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [b for b in range(256) if b not in printable]
    vocab = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(other)}
    shapes = {'model.embed_tokens': (259, 8), 'model.norm': (8,)}
    for name, shape in dict(input_layernorm=(8,), post_attention_layernorm=(8,)).items():
        shapes['model.layers.0.' + name] = shape
    for name in 'qkvo':
        shapes[f'model.layers.0.self_attn.{name}_proj'] = (8, 8)
    for name, shape in dict(gate=(32, 8), up=(32, 8), down=(8, 32)).items():
        shapes[f'model.layers.0.mlp.{name}_proj'] = shape
    shutil.rmtree(path, ignore_errors=True)
    save(path, {k + '.weight': ('F32', np.ones(v, 'f4')) for k, v in shapes.items()}, dict(
        architectures=['LlamaForCausalLM'], model_type='llama', hidden_size=8, num_hidden_layers=1,
        num_attention_heads=1, intermediate_size=32, vocab_size=259, max_position_embeddings=64, rms_norm_eps=1e-5,
        hidden_act='silu', tie_word_embeddings=True, bos_token_id=256, eos_token_id=257))
    level = dict(type='ByteLevel', add_prefix_space=False, trim_offsets=True, use_regex=False)
    added = [dict(id=256 + i, content=t, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
             for i, t in enumerate(['<s>', '</s>', '<|x|>'])]
    put(path, 'tokenizer.json', dict(added_tokens=added, normalizer=None, pre_tokenizer=level, post_processor=level,
                                     decoder=level, model=dict(type='BPE', vocab=vocab, merges=[])))
    put(path, 'tokenizer_config.json', TOKENS | config)
    if template is not None:
        put(path, 'chat_template.jinja', template)


def put(path, name, what):
    with open(os.path.join(path, name), 'w', newline='') as f:
        f.write(what if isinstance(what, str) else json.dumps(what))


def text_of(path):
    """The texts of the sequences of a tokens file."""
    special = {256: b'<s>', 257: b'</s>', 258: b'<|x|>'}
    with h5py.File(path) as f:
        ids, ends = f['tokens'][()].tolist(), f['sequence'][()]
    return [b''.join(special.get(i) or bytes([i]) for i in ids[a:b]).decode() for a, b in zip(ends, ends[1:])]


def tokenize(*options):
    return subprocess.run(['tokenize', '--chat', '--model', 'm', '--date', '2024-02-29', *options, '-o', 'out.h5'],
                          capture_output=True, text=True)


def rendered(template, messages):
    """What tokenize makes of a conversation, or its message."""
    put('m', 'chat_template.jinja', template)
    put('.', 'one.jsonl', json.dumps(messages) + '\n')
    run = tokenize('one.jsonl')
    return run.stderr.strip() if run.returncode else text_of('out.h5')[0]


def compare(template, name):
    wanted = environment().from_string(template).render(**variables(MESSAGES))
    got = rendered(template, MESSAGES)
    pairs = list(zip(got.split('\n;;'), wanted.split('\n;;')))
    assert got == wanted, (name, next(((a, b) for a, b in pairs if a != b), (got[-200:], wanted[-200:])))


def expressions():
    """All expressions in one template."""
    all = cases(EXPRESSIONS)
    compare(PARTS + ''.join('{{ %s }}\n;;' % e for e in all), 'expressions')
    return len(all) > 250


def statements():
    """Each line alone, in its own scope, and all as one template, for white space between them."""
    for line in STATEMENTS.strip().split('\n'):
        tags = re.findall(r'{%[-+]? *(\w+)', line)
        if tags and all(tags.count(k) == tags.count('end' + k) for k in ('for', 'if')):
            compare('.' + line, line)
    compare(STATEMENTS, 'statements')
    compare(STATEMENTS.replace('\n', '\r\n'), 'other newlines')
    compare(STATEMENTS.replace('\n', '\r') + '\n', 'other newlines')


def spaces(seed):
    """Random tags with random signs and white space between them."""
    dice, all = random.Random(int(seed)), ''
    for _ in range(400):
        t, depth = '', 0
        for _ in range(12):
            kind = dice.choice(['if true', 'if 0', 'endif', 'set v = 1', '', '', '#'])
            if kind == 'endif':
                if not depth:
                    continue
                depth -= 1
            depth += kind.startswith('if')
            begin, end = dice.choice(['', '-', '+', '']), dice.choice(['', '-', '+', ''])
            if not kind:
                t += '{{' + begin.strip('+') + dice.choice(['1', " 'a' ", ' "b"']) + end.strip('+') + '}}'
            else:
                t += f'{{#{begin} c {end}#}}' if kind == '#' else f'{{%{begin} {kind} {end}%}}'
            t += ''.join(dice.choices(['', ' ', '\n', '\t', 'x', '\u00a0', '\u2003', '\r\n', '\x1c', '\x0b'],
                                      k=dice.randint(0, 4)))
        all += t + '{% endif %}' * depth + '\n;;'
    compare(all, 'spaces')


def raising():
    """What jinja2 refuses, tokenize refuses, and names the line of the template."""
    import jinja2

    all = ['{{ %s }}' % e for e in cases(RAISING)] + RAISING_STATEMENTS.strip().split('\n')
    for t in all:
        try:
            environment().from_string(t).render(**variables(MESSAGES))
            assert False, t
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, KeyError, AttributeError):
            pass
        got = rendered('\n' + t, MESSAGES)
        assert re.fullmatch(r'tokenize: (one.jsonl:1: )?m: chat template:2: [^\n]+', got), (t, got)
        assert 'is not supported' not in got, (t, got)
    return len(all) > 70


def refused():
    for t, message in REFUSED:
        got = rendered(t, MESSAGES)
        assert re.fullmatch('tokenize: m: chat template:.*' + message + '.*', got), (t[:80], got)


def stopped():
    for t, message in STOPPED:
        got = rendered(t, MESSAGES)
        assert re.search(message, got) and got.startswith('tokenize: ') and '\n' not in got, (t[:80], got)


def history(path):
    """The last line of the history."""
    return h5py.File(path).attrs['history'].strip().split('\n')[-1].replace('\n', ' ')


def named():
    model('named', chat_template=[dict(name='default', template='long'), dict(name='short', template='s')])


def string():
    model('string', bos_token=None, eos_token='</s>',
          chat_template='{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token }}|{{ cls_token }}')
    put('string', 'special_tokens_map.json', dict(bos_token=dict(content='<s>'), eos_token='no', unk_token='U'))


def deep():
    return json.dumps([dict(role='user', content='', x=json.loads('[' * 300 + ']' * 300))])
