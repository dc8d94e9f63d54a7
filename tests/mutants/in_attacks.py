"""Mistakes that only an attack would notice: a trace of the coin, a seed, a cell that is used."""

from __future__ import annotations

from mutants.mutant import Mutant

COIN = "attacks/test_the_coin.py"
RANDOM = "attacks/test_randomness.py"
PEERS = "attacks/test_known_failures_of_peers.py"
REPLAY = "replay/test_replay.py::test_neighbors_differ_in_the_noise_alone"

MUTANTS = (
    Mutant(
        file="mechanisms/noisy_test.py",
        old="        inside = self.lattice.contains(np.asarray(tried))\n",
        new="        inside = cell is not None and self.lattice.contains(np.asarray(tried))\n",
        tests=(f"{COIN}::test_a_test_that_fails_makes_the_calls_of_one_that_passes",),
    ),
    Mutant(
        file="channels/channel.py",
        old="bits=bits)[0]) else kept\n",
        new="bits=bits)[0]) else sorted([kept])[0]\n",
        tests=(f"{COIN}::test_both_sides_of_the_mixing_coin_make_the_same_calls",),
    ),
    Mutant(
        file="exact/bits.py",
        old="        data = os.urandom(count)\n",
        new="        data = np.random.default_rng(7).bytes(count)\n",
        tests=(f"{RANDOM}::test_threads_never_repeat_each_other",),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="            sensitivity=max(_moves",
        new="            sensitivity=min(1, 1) or max(_moves",
        tests=(f"{PEERS}::test_no_power_of_a_value_moves_more_than_its_noise_is_for",),
    ),
    Mutant(  # a row goes, and another comes
        file="tasks/statistics.py",
        old="moved = 2 * steps * stretch(",
        new="moved = steps * stretch(",
        tests=(f"{REPLAY}[mean]",),
    ),
    Mutant(  # the private number of rows, without its noise
        file="tasks/statistics.py",
        old="float(size) * k / number if number > 0",
        new="float(size) * k / exact[0] if exact[0] > 0",
        tests=(f"{REPLAY}[mean]",),
    ),
    Mutant(  # a row that is replaced moves one score up and another down
        file="tasks/features.py",
        old="monotone=added, neighbors",
        new="monotone=True, neighbors",
        tests=(f"{REPLAY}[decision_tree]",),
    ),
)
