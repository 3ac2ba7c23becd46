"""Results of utils/bench/benchmark.py as tables and plots; what a line has says steps/benchmark/comparison.py."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspeech.report.tables import decimals, markdown_table, percent
from steps.benchmark.comparison import Difference, is_disturbed
from steps.benchmark.timing import spread

HEADER = ",seconds,least,most,CPU s,real-time factor,audio s/s,efficiency %,waiting %,host GB,device GB,result,note".split(",")


def report(results: Mapping[str, Any]) -> str:
    """Markdown: the machine, a table of the lines, what was disturbed or failed."""
    machine, lines = results["machine"], results["lines"]
    what = (
        f"{results['rounds']} rounds of {results['repeats']} repeats of {results['seconds']:g} s, "
        "the median with the least and the most; "
        f"{results['threads']} threads a process, on {results['device']}."
    )
    if results["seconds"] < results["least_seconds"]:
        what += f" Short repeats, of less than {results['least_seconds']:g} s: these figures are for a trial."
    rows = [cells(name, line, lines) for name, line in lines.items() if "problem" not in line]
    parts = ["# Benchmark", describe(machine), what, markdown_table(HEADER, rows) if rows else ""]
    parts += [f"{name}: {line['problem']}" for name, line in lines.items() if "problem" in line]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def describe(machine: Mapping[str, Any]) -> str:
    """A machine in a line."""
    gpus = f", {len(machine['gpus'])} GPUs ({', '.join(sorted(set(machine['gpus'])))})" if machine["gpus"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['host']}: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gigabytes']:g} GB{gpus}; "
        f"{machine['system']}; {versions}; commit {machine['commit'] or 'unknown'}."
    )


def cells(name: str, line: Mapping[str, Any], lines: Mapping[str, Any]) -> list[str | None]:
    median, least, most = spread(line["seconds"])
    note = f"disturbed ({line['pressure']:.0f} % pressure)" if is_disturbed(line) else ""
    return [
        name,
        *(f"{value:.3g}" for value in (median, least, most, spread(line["cpu_seconds"])[0])),
        f"{median / line['audio_seconds']:.3g}",
        f"{line['audio_seconds'] / median:.4g}",
        percent(efficiency(line, lines), 0),
        percent(line["waiting"], 0),
        decimals(line["host_gigabytes"], ".2f"),
        decimals(line["device_gigabytes"], ".2f"),
        f"{line['proof'][-1]:.5g}",
        note,
    ]


def efficiency(line: Mapping[str, Any], lines: Mapping[str, Any]) -> float | None:
    """The share of N times the speed of one process that N have; None for one, and where it was not measured."""
    alone = next(
        (
            other
            for other in lines.values()
            if "problem" not in other and other["processes"] == 1 and other["work"] == line["work"]
        ),
        None,
    )
    if line["processes"] == 1 or alone is None:
        return None
    return spread(alone["seconds"])[0] / (line["processes"] * spread(line["seconds"])[0])


def report_comparison(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    names: Sequence[str],
    differences: Sequence[Difference],
    others: Sequence[str],
) -> str:
    """Markdown: two results beside each other."""
    header = ["", names[0], names[1], f"{names[1]} is as fast, times", "computing", "note"]
    rows = [
        [one.name, *(f"{seconds:.3g}" for seconds in one.seconds), one.verdict, one.cpu_verdict, one.note]
        for one in differences
    ]
    same = sum(one.verdict == "no difference" for one in differences)
    parts = [
        "# Comparison",
        *(
            f"{name}: {describe(result['machine'])} {result['threads']} threads a process, on {result['device']}."
            for name, result in zip(names, (first, second), strict=True)
        ),
        "Seconds (median). No difference: the ranges of the repeats overlap; of the time, and of the time of computing.",
        markdown_table(header, rows),
        f"No difference in {same} of {len(differences)} lines.",
    ]
    parts += [f"Not compared, as one of them alone has it: {', '.join(others)}."] if others else []
    return "\n\n".join(part.strip() for part in parts) + "\n"


def plot(results: Sequence[Mapping[str, Any]], names: Sequence[str], path: Path | str) -> None:
    """A PNG: audio seconds a second of each line, on a logarithmic scale, from the least to the most; a colour a result."""
    from pyspeech.report.plots import new_figure, save

    lines = list(dict.fromkeys(name for result in results for name, line in result["lines"].items() if "problem" not in line))
    figure, axes = new_figure(8, 1.2 + 0.22 * len(lines) * len(results))
    height = 0.8 / len(results)
    for number, (result, name) in enumerate(zip(results, names, strict=True)):
        found = [
            (place, line, *spread(line["seconds"]))
            for place, key in enumerate(lines)
            for line in [result["lines"].get(key)]
            if line and "problem" not in line
        ]
        speeds = [line["audio_seconds"] / median for _, line, median, _, _ in found]
        slowest, fastest = ([line["audio_seconds"] / entry[place] for _, line, *entry in found] for place in (2, 1))
        bounds = [
            [speed - low for speed, low in zip(speeds, slowest, strict=True)],
            [high - speed for speed, high in zip(speeds, fastest, strict=True)],
        ]
        axes.barh([place + number * height for place, *_ in found], speeds, height, xerr=bounds, label=name, capsize=2)
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(lines))], lines)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("seconds of audio a second")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    save(figure, path)
