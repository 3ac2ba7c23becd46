"""Repeats, pressure, the machine, and comparisons of made-up results."""

import time

import pytest
from tool_harness import one_line_error

from pyspeech.engine.workers import in_processes
from steps.benchmark import timing
from steps.benchmark.comparison import add_round, compare, work_changes
from steps.benchmark.machine import describe_machine, held_gigabytes, peak_gigabytes
from steps.benchmark.timing import Team, best_process_times, cpu_pressure, repeat, thread_variables


def test_repeats_last_as_long_as_asked_for():
    calls = []

    def call():
        calls.append(time.monotonic())
        time.sleep(0.002)

    times = repeat(call, repeats=3, seconds=0.3)
    assert len(times.seconds) == len(times.cpu_seconds) == 3
    assert times.calls >= 5 and len(calls) > 3 * times.calls  # and those to warm up
    assert all(0.002 <= each < 1 for each in times.seconds)
    assert all(
        computed < each for each, computed in zip(times.seconds, times.cpu_seconds, strict=True)
    )  # asleep, it does not compute


def test_a_call_that_takes_longer_is_a_repeat_of_its_own():
    assert repeat(lambda: time.sleep(0.02), repeats=2, seconds=0.001).calls == 1


def test_a_team_does_as_many_calls_each_and_waits_for_the_last():
    team = Team(2)

    def work(number):
        team.number = number
        return number, repeat(lambda: time.sleep(0.004 * (1 + 4 * number)), 2, 0.05, team)

    done = dict(in_processes(work, range(2), 2))
    assert done[0].calls == done[1].calls
    assert min(done[0].seconds) >= 0.02  # of the slower one


@pytest.mark.parametrize(
    "text, expected",
    [("some avg10=12.34 avg60=1.00 avg300=0.00 total=1\nfull avg10=9.00\n", 12.34), ("", None), ("some\n", None)],
)
def test_pressure(text, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "PRESSURE", tmp_path / "cpu")
    assert cpu_pressure() is None
    (tmp_path / "cpu").write_text(text)
    assert cpu_pressure() == expected


def test_best_of_several_that_take_turns():
    order = []
    times, results = best_process_times([lambda: order.append("a"), lambda: order.append("b") or 7], 2)
    assert order == ["a", "b"] * 3 and results == [None, 7] and all(0 <= each < 1 for each in times)
    assert thread_variables(3)["OMP_NUM_THREADS"] == "3"


def test_the_machine():
    found = describe_machine()
    assert found["cores"] >= 1 and found["memory_gigabytes"] > 0.1 and found["cpu"] and "torch" in found["versions"]
    assert 0 < held_gigabytes() <= peak_gigabytes() < 100


def line(*seconds, cpu=None, **changes):
    values = {"work": {"recipe": "a", "train.lr": 0.1}, "seconds": seconds, "cpu_seconds": cpu or seconds, "proof": [3.0]}
    return {**values, "device": "cpu", "pressure": 1.0, **changes}


def compared(first, second):
    [found], others = compare([{"lines": {"x": first}}, {"lines": {"x": second}}], ["A", "B"])
    assert others == []
    return found


def test_ranges_that_overlap_are_no_difference():
    found = compared(line(1.0, 1.1, 1.2), line(1.2, 1.3, 1.4))
    assert found.verdict == "no difference" and found.ratio == 1.0 and found.note == ""


def test_ranges_that_do_not_are_told_by_the_medians():
    found = compared(line(1.0, 1.1, 1.2, cpu=(1.0, 1.2)), line(2.0, 2.2, 2.4, cpu=(1.1, 1.3)))
    assert found.verdict == "0.50 x" and found.cpu_verdict == "no difference" and found.seconds == (1.1, 2.2)


def test_other_results_and_disturbed_figures_are_said():
    assert compared(line(1.0), line(1.0, proof=[3.1])).note == "not the same result: 3.2% apart"
    assert compared(line(1.0), line(1.0, proof=[3.1], device="cuda")).note == ""  # dropout draws other numbers there
    assert compared(line(1.0), line(1.0, proof=[3.0, 2.0])).note.startswith("not the same result")
    assert compared(line(1.0), line(1.0, pressure=54.0)).note == "disturbed: second"
    assert compared(line(1.0, pressure=None), line(1.0, pressure=11.0)).note == "disturbed: second"


def test_other_work_is_refused():
    with one_line_error(r"A and B: 'x' is other work: train.lr 0.1 -> 0.2; measure"):
        compared(line(1.0), line(1.0, work={"recipe": "a", "train.lr": 0.2}))
    assert work_changes({"a": 1, "b": [1, 2]}, {"b": [1, 2], "new": 3}) == []
    with one_line_error("no line in common"):
        compare([{"lines": {"x": line(1.0)}}, {"lines": {"y": line(1.0)}}], ["A", "B"])


def test_lines_of_one_of_them_alone_are_listed():
    first = {"lines": {"x": line(1.0), "y": line(1.0), "z": {"problem": "it stopped"}}}
    found, others = compare([first, {"lines": {"x": line(1.0), "z": line(1.0)}}], ["A", "B"])
    assert [one.name for one in found] == ["x"] and others == ["y", "z"]


def test_rounds_add_up():
    first = {**line(1.0, 2.0), "waiting": 0.1, "host_gigabytes": 0.5, "device_gigabytes": None}
    second = {**first, "seconds": [3.0, 4.0], "waiting": 0.2, "host_gigabytes": 0.4, "pressure": 7.0}
    both = add_round(add_round(None, first), second)
    assert both["seconds"] == [1.0, 2.0, 3.0, 4.0] and both["cpu_seconds"] == [1.0, 2.0, 1.0, 2.0]
    assert (both["pressure"], both["host_gigabytes"], both["device_gigabytes"]) == (7.0, 0.5, None)
    assert add_round(both, {**second, "waiting": 0.9})["waiting"] == pytest.approx(0.4)
    assert add_round(both, {"problem": "it stopped"}) == {"problem": "it stopped"}
