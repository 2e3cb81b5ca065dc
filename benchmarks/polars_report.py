"""What a part of the benchmark of Polars programs found: figures with words for people, passed on between processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, the median of several where there are several; target: what it should be, for people."""

    name: str
    words: str
    value: float
    unit: str
    target: str = ""
    lowest: float | None = None
    highest: float | None = None

    def __str__(self) -> str:
        spread = "" if self.lowest is None else f" ({shown(self.lowest)} to {shown(self.highest or 0.0)})"
        return f"{shown(self.value)} {self.unit}".strip() + spread


@dataclass(slots=True)
class Report:
    """Figures under headings, in the order in which they were found."""

    sections: dict[str, list[Figure]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    heading: str = ""

    def begin(self, heading: str) -> None:
        """Figures that follow stand under this heading."""
        self.heading = heading
        self.sections.setdefault(heading, [])

    def add(self, name: str, words: str, values: float | Sequence[float], unit: str, target: str = "") -> None:
        """Takes up a number, or several of which the median counts."""
        several = [values] if isinstance(values, int | float) else list(values)
        low, high = (min(several), max(several)) if len(several) > 1 else (None, None)
        self.sections[self.heading].append(Figure(name, words, median(several), unit, target, low, high))

    def written(self) -> str:
        """One line, from which another process reads it."""
        sections = {heading: [asdict(figure) for figure in figures] for heading, figures in self.sections.items()}
        return json.dumps({"sections": sections, "notes": self.notes})

    @classmethod
    def read(cls, line: str) -> Report:
        """The report of another process."""
        found = json.loads(line)
        sections = {heading: [Figure(**each) for each in figures] for heading, figures in found["sections"].items()}
        return cls(sections, found["notes"])

    def join(self, other: Report) -> None:
        """Takes up everything of another report."""
        self.sections.update(other.sections)
        self.notes.extend(other.notes)

    def as_json(self) -> str:
        """All figures by their names."""
        plain: dict[str, float] = {}
        for figure in (figure for figures in self.sections.values() for figure in figures):
            plain[figure.name] = rounded(figure.value)
            if figure.lowest is not None and figure.highest is not None:
                plain[f"{figure.name}_lowest"] = rounded(figure.lowest)
                plain[f"{figure.name}_highest"] = rounded(figure.highest)
        return json.dumps(plain)

    def show(self) -> None:
        """Tables for people."""
        everything = [figure for figures in self.sections.values() for figure in figures]
        width = max((len(figure.words) for figure in everything), default=0)
        for heading, figures in self.sections.items():
            print(heading)
            for figure in figures:
                aim = f"  aim: {figure.target}" if figure.target else ""
                print(f"  {figure.words:<{width}}  {figure!s:<30}{aim}".rstrip())
            print()
        print("\n".join([*self.notes, ""]), flush=True)


def rounded(value: float) -> float:
    return round(value, 1) if abs(value) >= 100 else float(f"{value:.4g}")


def shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
