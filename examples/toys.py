"""The paper's two toy problems, made anew."""

import numpy as np


def make_plus_sign(n_rows: int = 2_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of the unit square; class 1 is a plus sign of two bars."""
    X = np.random.default_rng(seed).uniform(size=(n_rows, 2))
    return X, (np.abs(X - 0.5) < 0.12).any(axis=1).astype(int)


def make_bars(n_bars: int, n_rows: int = 2_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of the unit interval; class 1 is `n_bars` bars of equal width."""
    x = np.random.default_rng(seed).uniform(size=(n_rows, 1))
    return x, (np.cos(2 * np.pi * n_bars * x[:, 0]) <= 0).astype(int)
