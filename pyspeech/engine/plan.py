"""Plan of a run: which stages are stale and why, decided from recorded facts, never from the age of the code.

A stage is stale when it has no finished record, an output is missing or changed, an option that it declared has another
value (and is not one without effect on results), an input changed, or its declared version differs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pyspeech.engine import artifacts, config, stages
from pyspeech.engine.artifacts import Artifacts
from pyspeech.engine.records import Records, config_changes
from pyspeech.engine.stages import Stage
from pyspeech.errors import UserError

SHOWN_REASONS = 3


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A decision about a stage. fresh: it starts from nothing, whatever an earlier attempt has left."""

    runs: bool
    reason: str
    fresh: bool = True


class Plan:
    """The state of an experiment folder against the present configuration.

    stages: all stages of the recipe, bound to the configuration; options: the configuration as {dotted key: value};
    defaults: that of the dataclass alone, and of options that are no longer there; without_effect: keys of options that change
    no result; files: Artifacts of the folder; records: its Records.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        options: Mapping[str, Any],
        defaults: Mapping[str, Any],
        without_effect: Collection[str],
        files: Artifacts,
        records: Records,
    ) -> None:
        self.stages, self.options, self.defaults, self.without_effect = stages, options, defaults, without_effect
        self.files, self.records = files, records
        for stage in stages:
            record = records.finished(stage.name) or {}
            for known in (records.attempt(stage.name) or {}, record):
                files.learn(known.get("inputs", {}))
            files.learn(record.get("outputs", {}))

    def facts(self, stage: Stage) -> dict[str, Any]:
        """Collect what the result of a stage depends on; recorded when it starts."""
        return {
            "version": stage.version,
            "config": config.below(self.options, stage.config),
            "inputs": self.files.fingerprints(stage.inputs),
        }

    def verdict(self, stage: Stage, changing: Collection[Stage] = (), force: bool = False) -> Verdict:
        """Decide about a stage. changing: stages before it that will have run by then (for a forecast); force: it runs
        though it is up to date."""
        if stage.idle:
            return Verdict(False, "nothing to make with these options")
        if force:
            return Verdict(True, "forced")
        coming = [
            pattern for pattern in artifacts.expand(stage.inputs) if any(stages.makes(other, pattern) for other in changing)
        ]
        forecast = [f"its input {pattern} will change" for pattern in coming]
        record = self.records.finished(stage.name)
        if record:
            reasons = (
                self._differences(stage, record, coming)
                or forecast
                or [f"its output {name} {what}" for name, what in self.files.changes(record["outputs"], stage.outputs)]
            )
            return Verdict(True, _join(reasons)) if reasons else Verdict(False, "up to date")
        attempt = self.records.attempt(stage.name)
        if not attempt:
            return Verdict(True, "no finished record")
        reasons = self._differences(stage, attempt, coming) or forecast
        if reasons:
            return Verdict(True, _join(["it did not finish"] + reasons))
        if stage.resumable:
            return Verdict(True, "it did not finish; goes on where it stopped", fresh=False)
        return Verdict(True, "it did not finish")

    def forecast(self, selected: Sequence[Stage], force: bool = False) -> list[tuple[Stage, Verdict]]:
        """[(stage, Verdict)] for the stages of a run that has not begun."""
        verdicts, changing = [], []
        for stage in selected:
            verdict = self.verdict(stage, changing, force)
            verdicts.append((stage, verdict))
            if verdict.runs:
                changing.append(stage)
        return verdicts

    def check_inputs(self, selected: Sequence[Stage], command: Callable[[Stage], str]) -> None:
        """Raise UserError where the selected stages cannot start, or would build on what no longer holds.

        command(stage) is the command line that mends an earlier stage.
        """
        stale = [
            (stage, reason)
            for stage in stages.upstream(selected, self.stages)
            for reason in [self._why_unusable(stage, selected)]
            if reason
        ]
        for stage in selected:
            for name in self.files.missing(stage.inputs):
                made_by = [other for other in self.stages[: stage.number] if stages.makes(other, name)]
                if not made_by:
                    raise UserError(f"{stage} needs {name}, which is not there and which no stage makes")
                if made_by[-1] not in selected:
                    first = stale[0][0] if stale else made_by[-1]
                    also = "" if first == made_by[-1] else f" ({first} comes before it and is not up to date either)"
                    raise UserError(f"{stage} needs {name}, which {made_by[-1]} makes: run --stage {first.number}{also}")
        for stage, reason in stale:
            raise UserError(f"{selected[0]} builds on {stage}, which is not up to date ({reason}): run {command(stage)}")

    def _why_unusable(self, stage, selected):
        """Why an earlier stage must run first, or "". Where files that the selected stages do not read themselves were
        deleted (features, to save space), that is no reason."""
        record = self.records.finished(stage.name)
        if not record:
            return self.verdict(stage).reason
        deleted = [pattern for pattern in artifacts.expand(stage.inputs) if self.files.missing([pattern])]
        read = [pattern for reader in selected for pattern in artifacts.expand(reader.inputs)]
        return _join(
            self._differences(stage, record, deleted)
            + [
                f"its output {name} {what}"
                for name, what in self.files.changes(record["outputs"], stage.outputs)
                if any(artifacts.overlap(name, pattern) for pattern in read)
            ]
        )

    def _differences(self, stage, recorded, ignored):
        """Why the recorded facts do not hold any more; inputs within the patterns `ignored` are not looked at."""
        reasons = []
        if recorded["version"] != stage.version:
            reasons.append(f"its version changed, {recorded['version']} -> {stage.version}")
        declared = {
            key: value
            for key, value in config.below(self.options, stage.config).items()
            if key not in self.without_effect or key in stage.config
        }
        changes = config_changes(recorded["config"], declared, self.options, self.defaults)
        if changes:
            reasons.append("configuration changed, " + _join(changes))
        for name, what in self.files.changes(recorded["inputs"], stage.inputs):
            if not any(artifacts.overlap(name, pattern) for pattern in ignored):
                reasons.append(f"its input {name} {what}")
        return reasons


def _join(reasons):
    shown = reasons[:SHOWN_REASONS]
    return "; ".join(shown) + (f"; and {len(reasons) - len(shown)} more" if len(reasons) > len(shown) else "")
