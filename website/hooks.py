"""Extend MkDocs: pages made from the code, and links to files beside docs/.

`docs/` is written to be read where it lies: links lead to sources, README and changelog. The site
has a page for each of those that is linked, so that no link leaves it. `website/printed.py` has the
pages that are printed from code and kept results.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.structure.files import File, Files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # MkDocs runs hooks from anywhere
    sys.path.append(str(ROOT))

from website.printed import PAGES, filled  # noqa: E402

LINK = re.compile(r"\[([^\[\]]*)\]\((\.\./[^)\s#]+)(#[^)\s]*)?\)")
ALONE = {"CHANGELOG.md": "changelog.md", "README.md": "index.md"}
LANGUAGES = {".py": "python", ".toml": "toml", ".v": "coq", ".md": "markdown", "": "text"}


def slug(text: str, separator: str) -> str:
    """Return the name by which a heading is linked to, as in tests/test_docs.py."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", separator)


def on_config(config: Any) -> Any:
    """Name headings as code hosts do, and keep every script on this computer."""
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def on_env(env: Any, config: Any, **_: Any) -> Any:
    """Put a script of ours where the offline plugin would fetch one from elsewhere."""
    config.extra["polyfills"] = ["assets/search-from-disk.js"]
    return env


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from the code."""
    texts = {file.src_uri: filled(file.content_string) for file in files.documentation_pages()}
    for name, make in PAGES.items():
        texts[name] = make()
        files.append(File.generated(config, name, content=at_home(texts[name], name)))
    for name, content in {**reference(), "changelog.md": changelog()}.items():
        files.append(File.generated(config, name, content=content))
    for path in sorted(linked(texts.values())):
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, source_page(path), content=listing(path, text)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Print what a page of docs/ leaves to be printed, and keep its links on the site."""
    if page.file.generated_by is not None:
        return markdown
    return at_home(filled(markdown), page.file.src_uri)


def at_home(text: str, name: str) -> str:
    """Turn links to files beside docs/ into links to their pages; folders have none."""
    up = "../" * name.count("/")

    def replaced(match: re.Match[str]) -> str:
        label, path, anchor = match[1], match[2].removeprefix("../"), match[3] or ""
        if path in ALONE:
            return f"[{label}]({up}{ALONE[path]}{anchor})"
        return f"[{label}]({up}{source_page(path)})" if (ROOT / path).is_file() else label

    return LINK.sub(replaced, text)


def linked(texts: Iterable[str]) -> set[str]:
    """Return the files beside docs/ that pages link to."""
    found = {match[2].removeprefix("../") for text in texts for match in LINK.finditer(text)}
    return {path for path in found - set(ALONE) if (ROOT / path).is_file()}


def source_page(path: str) -> str:
    """Return the page that shows a file."""
    return f"source/{path}.md"


def listing(path: str, text: str) -> str:
    """Return the page of a source file; it is not searched."""
    head = "---\nsearch:\n  exclude: true\nhide: [navigation]\n---\n"
    if path.endswith(".md"):
        return head + re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    language = LANGUAGES.get(Path(path).suffix, "text")
    fence = "`" * 4
    return f"{head}# {path}\n\n{fence}{language}\n{text}\n{fence}\n"


def changelog() -> str:
    """Return the changelog; it links to nothing."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def reference() -> dict[str, str]:
    """Return the pages of the reference: the API by concept, and the command line."""
    pages = {}
    for name, page in listed().items():
        lines = [f"# {page.pop('title')}", "", page.pop("about"), ""]
        for room, names in page.items():
            for item in shown(room, names):
                lines += entry(import_module(room), item)
        pages[f"reference/{name}.md"] = "\n".join(lines)
    return {**pages, "reference/command-line.md": command_line()}


def listed() -> dict[str, Any]:
    """Return reference.toml, with each verb on the page that its task names."""
    from zerodelta.tasks.registry import INDEX, TASKS

    pages: dict[str, Any] = tomllib.loads(
        (ROOT / "website" / "reference.toml").read_text(encoding="utf-8")
    )
    for name, task in TASKS.items():
        if task.page and task.verb is not None:
            room = ".".join(filter(None, ["zerodelta", INDEX[name].room]))
            pages[task.page].setdefault(room, []).append(task.verb.__name__)
    return pages


def shown(room: str, names: list[str] | str) -> list[str]:
    """Return what a page shows of a room: a list of names, "all", or all that `zerodelta` lacks."""
    if not isinstance(names, str):
        return names
    elsewhere = set() if names == "all" else set(import_module("zerodelta").__all__)
    return [name for name in public(import_module(room)) if name not in elsewhere]


def public(room: ModuleType) -> list[str]:
    """Return the functions and classes that a room lists, or else defines, by name."""
    listed = getattr(room, "__all__", None)
    named = {name: getattr(room, name) for name in listed or dir(room)}
    things = {name: thing for name, thing in named.items() if isclass(thing) or isfunction(thing)}
    if listed:
        return list(things)
    defined = {name for name, thing in things.items() if thing.__module__ == room.__name__}
    return [name for name in things if name in defined and not name.startswith("_")]


def entry(room: ModuleType, name: str) -> list[str]:
    """Return the lines for one name: where it is defined, and how a reader calls it."""
    thing = getattr(room, name)
    short = {"zerodelta": "zd"}.get(room.__name__, room.__name__)
    return [
        f"::: {thing.__module__}.{thing.__name__}",
        "    options:",
        f'      heading: "{short}.{name}"',
        f'      toc_label: "{name}"',
        "",
    ]


def command_line() -> str:
    """Return a page with every command: what it does, its arguments and its options."""
    import typer

    from zerodelta.cli import app
    from zerodelta.cli.commands import task_command
    from zerodelta.tasks.registry import COMMANDS

    root: Any = typer.main.get_command(app)
    lines = ["# Command line", "", *told(root.help)]
    for name in sorted(root.commands):
        command = task_command(name) if name in COMMANDS else root.commands[name]
        inner = getattr(command, "commands", {None: command})
        lines += [f"## zerodelta {name}", "", *told(command.help)]
        for under, subcommand in inner.items():
            if under is not None:
                lines += [f"### zerodelta {name} {under}", "", *told(subcommand.help)]
            lines += parameters(subcommand)
    return "\n".join(lines)


def told(text: str | None) -> list[str]:
    """Return a help text as Markdown: what is marked as verbatim is a block of its own."""
    lines: list[str] = []
    for block in (text or "").split("\n\n"):
        if block.lstrip().startswith("\b"):
            lines += ["```", *block.replace("\b", "").strip("\n").split("\n"), "```", ""]
        else:
            lines += [" ".join(block.split()), ""]
    return lines


def parameters(command: Any) -> list[str]:
    """Return a table of what a command takes."""
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        if parameter.param_type_name == "argument":
            names = f"`{parameter.name}`"
        help_text = " ".join((getattr(parameter, "help", "") or "").split())
        needed = " Required." if parameter.required else ""
        rows.append(f"| {names} | {help_text.replace('|', '∣')}{needed} |")
    return ["| argument or option | meaning |", "|---|---|", *rows, ""] if rows else [""]
