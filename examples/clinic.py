"""A clinical table as it comes from a ward. It is made up: no row is a person."""

import numpy as np
import pandas as pd

DRUGS = ["none", "diuretic", "ACE inhibitor", "beta blocker", "digoxin"]


def make_clinic(n_patients: int = 500, seed: int = 7) -> pd.DataFrame:
    """Stays in hospital for heart failure, as text, and whether the patient came back in 90 days.

    Some patients stay twice. Laboratory values below the limit of detection read "<50", missing
    ones "." or nothing, and sexes are written in several ways.
    """
    rng = np.random.default_rng(seed)
    patient = np.sort(np.concatenate([np.arange(n_patients), rng.choice(n_patients, 120)]))
    n = len(patient)
    # What belongs to a person is the same in all stays.
    age = np.clip(rng.normal(71, 11, n_patients), 34, 97).round()[patient]
    is_woman = (rng.random(n_patients) < 0.45)[patient]
    sodium = rng.normal(138, 4, n).round()
    creatinine = np.exp(rng.normal(np.log(95), 0.35, n)).round()
    bnp = np.exp(rng.normal(np.log(420), 1.1, n)).round()
    systolic = rng.normal(128, 20, n).round()
    drug = rng.choice(DRUGS, n, p=[0.25, 0.3, 0.25, 0.15, 0.05])
    day = pd.Timestamp("2023-01-02") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    risk = -2.9 + 2.4 * (bnp > 700) + 2.0 * (creatinine > 120) + 1.2 * (sodium < 134)
    risk += 2.2 * ((systolic < 105) | (systolic > 155)) + 1.0 * (age > 80)
    risk += np.select([drug == "digoxin", drug == "ACE inhibitor"], [1.8, -1.4])
    risk += rng.normal(0, 0.5, n_patients)[patient]
    came_back = rng.random(n) < 1 / (1 + np.exp(-risk))

    def text(values: np.ndarray, missing: float, sign: str = "") -> np.ndarray:
        words = np.char.mod("%d", values.astype(int)).astype(object)
        words[rng.random(n) < missing] = sign
        return words

    bnp_text = text(bnp, 0.06, ".")
    bnp_text[(bnp < 50) & (bnp_text != ".")] = "<50"
    sexes = np.where(is_woman, rng.choice(["F", "f", "female"], n), rng.choice(["M", "m"], n))
    return pd.DataFrame(
        {
            "patient": np.char.add("P", np.char.zfill(patient.astype(str), 4)),
            "admitted": day.strftime("%d.%m.%Y"),
            "age": text(age, 0.0),
            "sex": sexes,
            "systolic": text(systolic, 0.04),
            "sodium": text(sodium, 0.05, "."),
            "creatinine": text(creatinine, 0.05, "."),
            "BNP": bnp_text,
            "drug": np.where(rng.random(n) < 0.03, "", drug),
            "returned": np.where(came_back, "yes", "no"),
        }
    )
