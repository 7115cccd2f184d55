"""Parts of the rows, and the one way to ask them: a function of a part, and a way to join answers.

A holder of rows (this process, files, a cluster) is a list of parts. A question is a function
that is applied to each part where it is, and a function that makes one answer of several. Answers
are sums on exact grids, least and greatest values, or samples that are chosen by hashes of rows'
numbers, so that the answer for all rows is the same, bit for bit, however they are divided.

Functions are pure and can be pickled: those of a module, methods of classes, `partial` of these,
and what is below. A cluster may repeat them if a worker is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

Join = Callable[..., Any]
Finish = Callable[..., Any]
Result = TypeVar("Result")


class Parts(Protocol):
    """A list of parts: in this process, in files or on a cluster."""

    def ask(self, of: Callable[..., Any], join: Join, finish: Finish | None = None) -> Any:
        """One answer of all parts.

        Parameters
        ----------
        of : function
            Of a part.
        join : function
            Makes one answer of several. Some may be joined first, and then what comes of that; a
            single one may be left as it is.
        finish : function, optional
            What to make of the one answer, where it is.
        """
        ...

    def map(self, make: Callable[..., Any]) -> Parts:
        """What a function makes of each part, where it is; perhaps anew for each question."""
        ...


class ChangingParts(Parts, Protocol):
    """Parts, in whose place others may be put."""

    def change(self, make: Callable[..., Any]) -> None:
        """Put what a function makes of each part in its place."""
        ...


class LocalParts:
    """Parts in this process.

    Parameters
    ----------
    parts : iterable
        If it can be gone through once only, there can be a single question.
    """

    def __init__(self, parts: Iterable[Any]) -> None:
        self._parts = parts

    def ask(self, of: Callable[..., Any], join: Join, finish: Finish | None = None) -> Any:
        """One answer of all parts."""
        answer = joined([of(part) for part in self._parts], join)
        return answer if finish is None else finish(answer)

    def map(self, make: Callable[..., Any]) -> LocalParts:
        """What a function makes of each part."""
        return LocalParts([make(part) for part in self._parts])

    def change(self, make: Callable[..., Any]) -> None:
        """Put what a function makes of each part in its place."""
        self._parts = [make(part) for part in self._parts]


@dataclass(frozen=True)
class MappedParts:
    """What a function makes of parts; see `Parts.map`."""

    parts: Parts
    make: Callable[..., Any]

    def ask(self, of: Callable[..., Any], join: Join, finish: Finish | None = None) -> Any:
        """One answer of all parts."""
        return self.parts.ask(Then(self.make, of), join, finish)

    def map(self, make: Callable[..., Any]) -> MappedParts:
        """What a function makes of each part."""
        return MappedParts(self.parts, Then(self.make, make))


# --- questions made of others ---


@dataclass(frozen=True)
class Then:
    """One function, and another of what it returns."""

    first: Callable[..., Any]
    then: Callable[..., Any]

    def __call__(self, *part: Any) -> Any:
        return self.then(self.first(*part))


class Question(NamedTuple):
    """What to ask of parts; see `Parts.ask`."""

    of: Callable[..., Any]
    join: Join
    finish: Finish | None = None


# A computation that yields questions, is sent the answers, and returns a result.
Inquiry: TypeAlias = Generator[Question, Any, Result]


@dataclass(frozen=True)
class Questions:
    """Several questions as one."""

    questions: tuple[Question, ...]

    def __call__(self, part: Any) -> list[Any]:
        """Answers of a part."""
        return [question.of(part) for question in self.questions]

    def join(self, answers: Sequence[Sequence[Any]]) -> list[Any]:
        """Join answers of parts."""
        each = zip(*answers, strict=True)
        return [
            joined(own, question.join) for question, own in zip(self.questions, each, strict=True)
        ]

    def finish(self, answers: Sequence[Any]) -> list[Any]:
        """What is made of the answers of all parts."""
        each = zip(self.questions, answers, strict=True)
        return [
            answer if question.finish is None else question.finish(answer)
            for question, answer in each
        ]

    def ask(self, parts: Parts) -> list[Any]:
        """Answers of all parts."""
        if len(self.questions) == 1:
            return [parts.ask(*self.questions[0])]
        has_finish = any(question.finish is not None for question in self.questions)
        return list(parts.ask(self, self.join, self.finish if has_finish else None))


def _run_alone(inquiry: Inquiry[Result], parts: Parts) -> Result:
    answer = None
    while True:
        try:
            question = inquiry.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result
        answer = parts.ask(*question)


def run_inquiries(
    inquiries: Sequence[Inquiry[Result]], parts: Parts, n_at_once: int
) -> list[Result]:
    """Results of inquiries, which do not depend on each other.

    So many at once go on in turns: the questions that they yield in a turn are asked as one.
    """
    if n_at_once == 1 or len(inquiries) == 1:
        return [_run_alone(inquiry, parts) for inquiry in inquiries]
    results: list[Result] = []
    for first in range(0, len(inquiries), n_at_once):
        some = inquiries[first : first + n_at_once]
        found: dict[int, Result] = {}
        answers: dict[int, Any] = dict.fromkeys(range(len(some)))
        while answers:
            questions: dict[int, Question] = {}
            for number, answer in answers.items():
                try:
                    questions[number] = some[number].send(answer)
                except StopIteration as end:
                    found[number] = end.value
            told = Questions(tuple(questions.values())).ask(parts) if questions else []
            answers = dict(zip(questions, told, strict=True))
        results += [found[number] for number in range(len(some))]
    return results


# --- ways to join ---


def joined(answers: Sequence[Any], join: Join) -> Any:
    """One answer of several, or of one."""
    return answers[0] if len(answers) == 1 else join(answers)


def add(answers: Sequence[Any]) -> Any:
    """Join sums."""
    first, *others = answers
    if not others:
        return first
    total = np.add(first, others[0])
    for each in others[1:]:
        # Where types are the same, in the memory that is there.
        is_room = isinstance(total, np.ndarray) and total.dtype == np.result_type(total, each)
        total = np.add(total, each, out=total if is_room else None)
    return total


def add_each(answers: Sequence[Any]) -> Any:
    """Join several sums, each with its own, in a list or in a named tuple."""
    kind, sums = type(answers[0]), [add(each) for each in zip(*answers, strict=True)]
    return kind(*sums) if hasattr(kind, "_fields") else kind(sums)


def greatest(answers: Sequence[Any]) -> Any:
    """Join greatest values."""
    return np.max(answers, axis=0)


def every(answers: Sequence[Any]) -> Any:
    """Join what must hold for all rows."""
    return np.all(answers, axis=0)


def one_after_another(answers: Sequence[Sequence[Any]]) -> list[Any]:
    """Join lists of what parts have, in their order."""
    return [each for answer in answers for each in answer]


def join_distinct(parts: Sequence[list[Any]]) -> list[Any]:
    """Distinct values of every feature in all parts; None where no part has any."""
    each = ([own for own in of_parts if own is not None] for of_parts in zip(*parts, strict=True))
    return [np.unique(np.concatenate(told)) if told else None for told in each]
