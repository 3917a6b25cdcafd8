"""run.flags: the flags that made a working folder, kept so that it goes on with the same ones."""

import os
import pathlib
import sys

from absl import flags

# These may change when a run goes on: they do not change what it computes.
FREE = ("workdir", "checkpoint_every")


def recipe_flags() -> dict[str, str | None]:
    """The flags of the recipe as text, by name; None where one has no value."""
    values = flags.FLAGS
    found = {}
    for module, defined in values.flags_by_module_dict().items():
        # A recipe is `__main__`, whose name is the program's for absl.
        if module.startswith("zoo.") or module in (sys.argv[0], "__main__"):
            for flag in defined:
                found[flag.name] = None if flag.value is None else flag.serialize()
    return dict(sorted(found.items()))


def check(path: pathlib.Path, command: str) -> None:
    """Ends the program if a run under other flags is in the folder, and shows which differ.

    `--steps` may be more than it was, if the steps so far are whole epochs: then the longer run
    has made the same steps.

    Args:
        path: the run.flags file; it need not exist.
        command: the recipe's command line without flags.
    """
    if not path.exists():
        if (path.parent / "backup").exists():
            sys.exit(f"{path.parent} has checkpoints but no run.flags: choose another --workdir.")
        return
    if not any((path.parent / name).exists() for name in ("backup", "log.csv", "best.keras")):
        return  # It ended before it had saved anything: nothing is lost.
    then = _read(path)
    now = recipe_flags()
    different = [
        name
        for name in sorted(then.keys() | now.keys())
        if name not in FREE
        and then.get(name) != now.get(name)
        # A flag that run.flags does not name had no value then, or did not exist yet.
        and not (name not in then and flags.FLAGS[name].value == flags.FLAGS[name].default)
    ]
    if different == ["steps"] and _may_grow(then, now):
        return
    if different:
        lines = [
            f"  then {then.get(name) or 'no --' + name}   now {now.get(name) or 'no --' + name}"
            for name in different
        ]
        sys.exit(
            "\n".join([f"{path.parent} holds a run with other flags:", *lines])
            + f"\nGo on with that run by {command} --flagfile={path} --workdir={path.parent}, or "
            "choose another --workdir. (--steps may grow if the steps so far are whole epochs.)"
        )


def write(path: pathlib.Path, command: str) -> None:
    """Writes run.flags; absl reads it back with --flagfile."""
    lines = [f"# {command}", *(text for text in recipe_flags().values() if text)]
    lines = [line for line in lines if not line.startswith("--workdir=")]
    temporary = path.with_name(".run.flags")
    temporary.write_text("\n".join(lines) + "\n")
    os.replace(temporary, path)


def _read(path: pathlib.Path) -> dict[str, str]:
    """The lines of a run.flags by the name of their flag."""
    known = recipe_flags()
    lines = [line.strip() for line in path.read_text().splitlines()]
    read = {}
    for line in lines:
        if line and not line.startswith("#"):
            name = line.removeprefix("--").partition("=")[0]
            # A boolean that is off is written as --noNAME.
            if name not in known and name.removeprefix("no") in known:
                name = name.removeprefix("no")
            # A flag that is given several times has several lines.
            read[name] = f"{read[name]}\n{line}" if name in read else line
    return read


def _may_grow(then: dict, now: dict) -> bool:
    def steps(of: dict) -> int:
        return int(of["steps"].partition("=")[2])

    return steps(now) > steps(then) and steps(then) % flags.FLAGS.steps_per_epoch == 0
