"""Toy problems: the paper's two, made anew, and a checkerboard."""

import numpy as np


def make_plus_sign(n_rows: int = 2_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of the unit square; class 1 is a plus sign of two bars."""
    X = np.random.default_rng(seed).uniform(size=(n_rows, 2))
    return X, (np.abs(X - 0.5) < 0.12).any(axis=1).astype(int)


def make_bars(n_bars: int, n_rows: int = 2_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of the unit interval; class 1 is `n_bars` bars of equal width."""
    x = np.random.default_rng(seed).uniform(size=(n_rows, 1))
    return x, (np.cos(2 * np.pi * n_bars * x[:, 0]) <= 0).astype(int)


def make_checkerboard(n_rows: int = 2_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of a square; class 1 is the white squares of a board that stands on its corner."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, 2))
    turned = np.column_stack([X[:, 0] + X[:, 1], X[:, 0] - X[:, 1]])
    return X, np.floor(turned).sum(axis=1).astype(int) % 2
