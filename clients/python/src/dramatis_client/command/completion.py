"""The command completion: scripts for bash, zsh and fish, made from the parser."""

import argparse
from collections.abc import Callable
from typing import NamedTuple

from dramatis_client.command.output import print_text

BASH_TEMPLATE = """# bash completion of dramatis; add to ~/.bashrc: eval "$(dramatis completion bash)"
_dramatis() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" command="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in
            {names}) command="$word"; break ;;
        esac
    done
    case "$command" in
        "") COMPREPLY=($(compgen -W "{top}" -- "$current")) ;;
{cases}
    esac
}}
complete -o default -F _dramatis dramatis
"""
ZSH_TEMPLATE = """#compdef dramatis
# zsh completion of dramatis; write to a file _dramatis in a folder of $fpath
_dramatis() {{
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    case "$words[2]" in
{cases}
    esac
}}
compdef _dramatis dramatis
"""
FISH_HEADER = "# fish completion of dramatis; write to ~/.config/fish/completions/dramatis.fish\n"


class OptionHelp(NamedTuple):
    flag: str
    help: str
    takes_value: bool


class CommandHelp(NamedTuple):
    """A subcommand with its options, and the values of its first argument if they are fixed."""

    name: str
    help: str
    options: list[OptionHelp]
    choices: list[str]


def list_commands(parser: argparse.ArgumentParser) -> list[CommandHelp]:
    [commands] = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    helps = {one.dest: one.help or "" for one in commands._choices_actions}
    return [
        CommandHelp(name, helps[name], list_options(one), list_choices(one))
        for name, one in commands.choices.items()
    ]


def list_options(parser: argparse.ArgumentParser) -> list[OptionHelp]:
    return [
        OptionHelp(one.option_strings[-1], (one.help or "").replace("%%", "%"), one.nargs != 0)
        for one in parser._actions
        if one.option_strings
    ]


def list_choices(parser: argparse.ArgumentParser) -> list[str]:
    return [str(choice) for one in parser._actions if not one.option_strings for choice in one.choices or ()]


def build_bash_script(parser: argparse.ArgumentParser) -> str:
    commands = list_commands(parser)
    replies = {one.name: join_words(one.options, one.choices) for one in commands}
    cases = [
        f'        {name}) COMPREPLY=($(compgen -W "{reply}" -- "$current")) ;;'
        for name, reply in replies.items()
    ]
    names = [one.name for one in commands]
    return BASH_TEMPLATE.format(
        names="|".join(names), top=join_words(list_options(parser), names), cases="\n".join(cases)
    )


def join_words(options: list[OptionHelp], names: list[str]) -> str:
    return " ".join([*names, *[option.flag for option in options]])


def build_zsh_script(parser: argparse.ArgumentParser) -> str:
    commands = list_commands(parser)
    lines = [f"        {quote(f'{one.name}:{one.help}')}" for one in commands]
    cases = [f"        {one.name}) _arguments {' '.join(build_zsh_arguments(one))} ;;" for one in commands]
    return ZSH_TEMPLATE.format(commands="\n".join(lines), cases="\n".join(cases))


def build_zsh_arguments(command: CommandHelp) -> list[str]:
    options = [
        f"{one.flag}[{escape_brackets(one.help)}]{': :_files' if one.takes_value else ''}"
        for one in command.options
    ]
    rest = f"*: :({' '.join(command.choices)})" if command.choices else "*: :_files"
    return [quote(argument) for argument in (*options, rest)]


def escape_brackets(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")


def build_fish_script(parser: argparse.ArgumentParser) -> str:
    lines = []
    for one in list_commands(parser):
        lines.append(f"complete -c dramatis -n __fish_use_subcommand -a {one.name} -d {quote(one.help)}")
        condition = quote(f"__fish_seen_subcommand_from {one.name}")
        for option in one.options:
            value = " -r" if option.takes_value else ""
            flag = option.flag.removeprefix("--")
            lines.append(f"complete -c dramatis -n {condition} -l {flag} -d {quote(option.help)}{value}")
        if one.choices:
            lines.append(f"complete -c dramatis -n {condition} -a {quote(' '.join(one.choices))}")
    return FISH_HEADER + "\n".join(lines) + "\n"


def quote(text: str) -> str:
    """Quote for a shell: bash, zsh and fish read this form alike."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


SCRIPTS: dict[str, Callable[[argparse.ArgumentParser], str]] = {
    "bash": build_bash_script,
    "zsh": build_zsh_script,
    "fish": build_fish_script,
}


def run_completion(options: argparse.Namespace) -> int:
    return print_text(SCRIPTS[options.shell](options.parser))
