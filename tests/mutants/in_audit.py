"""Mistakes of the audit: a bound that is none, odds that are not fair, judging what was learned."""

from __future__ import annotations

from mutants.mutant import Mutant

BOUND = "audit/test_sampled_bound.py"
BETS = "audit/test_betting.py"

MUTANTS = (
    Mutant(
        file="audit/sampled.py",
        old="epsilon_of_guesses_lower(made, right, 1 - confidence)",
        new="epsilon_of_guesses_lower(made, right, confidence)",
        tests=(f"{BOUND}::test_a_correct_mechanism_is_rarely_flagged",),
    ),
    Mutant(
        file="audit/sampled.py",
        old="    guess = float(betaincinv(right, guesses - right + 1, float(alpha)))\n",
        new="    guess = float(betaincinv(right, guesses - right + 2, float(alpha)))\n",
        tests=(f"{BOUND}::test_the_bound_on_the_accuracy_is_valid_and_tight",),
    ),
    Mutant(
        file="audit/sampled.py",
        old="learn(columns[:half], sample.coins[:half], log_odds_objective, classifier)",
        new="learn(columns[half:], sample.coins[half:], log_odds_objective, classifier)",
        tests=(f"{BOUND}::test_no_outcome_is_judged_by_a_rule_that_was_learned_from_it",),
    ),
    Mutant(
        file="audit/sampled.py",
        old="    logs = right * scale + (guesses - right) * (scale - _GAINS)\n",
        new="    logs = right * scale + (guesses - right) * (scale - _GAINS / 2)\n",
        tests=(
            f"{BETS}::test_each_bet_is_fair_at_best_if_the_claim_is_true",
            f"{BETS}::test_a_true_claim_is_ever_refuted_with_probability_at_most_alpha",
        ),
    ),
    Mutant(
        file="audit/sampled.py",
        old="np.log(np.exp(logs - largest[:, None]).mean(axis=1))",
        new="np.log(np.exp(logs - largest[:, None]).sum(axis=1))",
        tests=(f"{BETS}::test_a_true_claim_is_ever_refuted_with_probability_at_most_alpha",),
    ),
    Mutant(
        file="audit/guess_rule.py",
        old='    if numbers.dtype.kind == "f":\n',
        new='    if numbers.dtype.kind == "no":\n',
        tests=(f"{BOUND}::test_the_precision_of_floats_leaks_what_the_noise_hides",),
    ),
)
