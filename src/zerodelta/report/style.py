"""Style the report: light or dark, as the reader prefers, and light on paper."""

from __future__ import annotations

from collections.abc import Mapping

COLORS: Mapping[str, Mapping[str, str]] = {
    "light": {
        "ground": "#ffffff",
        "card": "#f3f5f7",
        "text": "#1b1f24",
        "quiet": "#4f5863",
        "accent": "#0b5394",
        "bar": "#6b93b8",
        "line": "#c5ccd3",
        "warn": "#fff3cd",
        "warned": "#553f00",
    },
    "dark": {
        "ground": "#12161b",
        "card": "#1d242c",
        "text": "#e6e9ed",
        "quiet": "#b3bdc8",
        "accent": "#8cc2f7",
        "bar": "#4c789f",
        "line": "#45505c",
        "warn": "#3a2f10",
        "warned": "#ffe08a",
    },
}
"""Texts (text, quiet, accent) have a contrast of 4.5 or more on ground and card; warned on warn."""

_RULES = """
*{box-sizing:border-box}
html{scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--ground);color:var(--text);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
header,main,footer,nav{max-width:62rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.5rem}
h1{font-size:1.7rem;line-height:1.25;margin:.2rem 0 .4rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.2rem 0 .5rem;
border-bottom:1px solid var(--line);padding-bottom:.25rem}
h3{font-size:1.05rem;margin:1.4rem 0 .4rem;overflow-wrap:anywhere}
p,li,dd,dt,figcaption{overflow-wrap:anywhere}
td,th{overflow-wrap:break-word}
td:not(.n){overflow-wrap:anywhere}
.heard{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
a{color:var(--accent)}
a:focus-visible,.scroll:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.skip{position:absolute;left:-999rem}
.skip:focus{left:1rem;top:.5rem;background:var(--ground);padding:.4rem}
.quiet,figcaption,caption{color:var(--quiet)}
.big{font-size:1.15rem}
nav ul{padding:0;list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.8rem 0}
dl.glance{display:grid;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));
gap:.7rem;margin:1rem 0}
dl.glance div{background:var(--card);border-radius:.5rem;padding:.6rem .8rem}
dl.glance dt{font-weight:600}
dl.glance dd{margin:0}
table{border-collapse:collapse;min-width:min(24rem,100%);margin:.6rem 0;max-width:100%}
caption{text-align:left;padding-bottom:.3rem}
th,td{text-align:left;padding:.25rem .8rem .25rem 0;
border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}
.scroll{overflow-x:auto}
.warn{background:var(--warn);color:var(--warned);border-left:.35rem solid currentColor;
padding:.6rem .9rem;border-radius:.3rem;margin:.8rem 0}
code,pre{font:0.9em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--card);padding:.7rem .9rem;border-radius:.4rem;
white-space:pre-wrap;overflow-wrap:anywhere}
figure{margin:.8rem 0}
svg{width:100%;max-width:36rem;height:auto;display:block}
svg text{fill:var(--text);font-size:13px}
svg .g{stroke:var(--line);stroke-width:1}
svg .b{stroke:var(--bar);stroke-width:7;stroke-linecap:butt}
svg .d{fill:var(--accent)}
footer{color:var(--quiet);padding-bottom:2rem;margin-top:2.5rem}
@media print{nav,.skip{display:none}body{font-size:11pt}header,main,footer{max-width:none;padding:0}
h2,h3{break-after:avoid}figure,table,.warn,dl.glance div{break-inside:avoid}
pre,dl.glance div,.warn{border:1px solid var(--line)}a{color:inherit;text-decoration:none}}
"""


def css() -> str:
    """Return the style sheet of the page."""
    light, dark = (_variables(COLORS[name]) for name in ("light", "dark"))
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        + _RULES.replace("\n", "")
    )


def _variables(colors: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{color};" for name, color in colors.items())
