"""Why a tree is a single leaf, in words: what happened, how near it came, and what to do."""

from __future__ import annotations

from shapetree.data._table import FeatureInfo
from shapetree.fit._resamples import Evidence, NearestSplit
from shapetree.tree._digits import rounded


def why_single_leaf(
    evidence: Evidence | None,
    nearest: NearestSplit | None,
    features: tuple[FeatureInfo, ...],
    has_classes: bool,
    is_pure: bool = False,
) -> str:
    """The reason for a single leaf.

    Parameters
    ----------
    evidence : Evidence or None
        What resamples showed, if there were any.
    nearest : NearestSplit or None
        The split that came nearest; None if there is none.
    is_pure : bool
        Whether all rows have the same target.

    Returns
    -------
    str
        Sentences, of which the first starts in lower case and the last has no full stop.
    """
    if is_pure:
        return "all rows have the same target, so there is nothing to learn"
    if nearest is None:
        return (
            "no feature can split the rows within the limits. Check that the features vary, and "
            "lower min_samples_leaf, min_samples_split or search.min_weight_fraction_leaf"
        )
    name = " and ".join(repr(features[number].name) for number in nearest.features)
    if evidence is not None and not evidence.is_convincing:
        return (
            "small trees did not predict rows held out clearly better than no tree does. "
            f"{_evidence_words(evidence, has_classes)}. The split that came nearest is on {name}. "
            "More rows or better features may help; resamples=0 fits a tree without this check"
        )
    return (
        "no split gains as much as it costs. The one that came nearest, on "
        f"{name}, {_gain_words(nearest, has_classes)}. A lower strength makes splits cheaper, and "
        "search.leaf_penalty=0 makes them free"
    )


def _evidence_words(evidence: Evidence, has_classes: bool) -> str:
    """What small trees gained on rows held out, and how surely they had to."""
    change = "lower" if evidence.gain >= 0 else "higher"
    if has_classes:
        score, said = "log loss", str(rounded(abs(evidence.gain), 2))
    else:
        score, said = "error", f"{rounded(100 * abs(evidence.gain), 2)} %"
    trend, needed = (f"{number:.1f}" for number in (evidence.trend, evidence.needed))
    return (
        f"In {evidence.n_resamples} resamples their {score} was {said} {change} than without a "
        f"tree; what they predicted went with the targets by {trend} standard errors, and more "
        f"than {needed} are asked"
    )


def _gain_words(nearest: NearestSplit, has_classes: bool) -> str:
    """What a split gains on the rows that it was chosen on, and what it had to."""
    gain, needed = rounded(nearest.gain, 2), rounded(nearest.needed, 2)
    if has_classes:
        return f"gains {gain} bits on the training rows, and had to gain more than {needed}"
    return (
        f"removes as much error as {gain} rows have on average, and had to remove that of more "
        f"than {needed}"
    )
