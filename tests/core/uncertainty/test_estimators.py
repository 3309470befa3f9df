"""Estimators by hand, against published vectors and rouge_score, and by their properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rouge_score.rouge_scorer import RougeScorer
from scipy.special import entr, logsumexp

from core.text.overlap import rouge_l, rouge_l_matrix
from core.uncertainty.clusters import both_ways, clusters_of_equals, greedy_clusters, order_dependence
from core.uncertainty.measures import (
    centroid_distances,
    consensus,
    contradiction_rate,
    discrete_semantic_entropy,
    embedding_variance,
    kuhn_entropy,
    lexical_diversity,
    number_of_semantic_sets,
    p_true,
    semantic_entropy,
)
from core.uncertainty.similarity import (
    agreement,
    content,
    cosine,
    jaccard,
    mean_off_diagonal,
    typical_agreement,
)
from core.uncertainty.spectral import (
    answer_eccentricity,
    degree_uncertainty,
    eccentricity,
    eigenvalues,
    kernel_language_entropy,
    sum_eigen,
)

NAN = math.nan
TEXTS = st.lists(
    st.sampled_from(
        ["Paris", "paris.", "Rome", "in Paris, France", "the city of Rome", "", "巴黎", "Việt Nam", "Ω"]
    ),
    min_size=1,
    max_size=8,
)
VECTORS = st.integers(2, 8).flatmap(
    lambda n: arrays(float, (n, 3), elements=st.floats(-1, 1).filter(lambda x: x == 0 or abs(x) > 1e-3))
)
IDS = st.lists(st.integers(0, 4), min_size=1, max_size=12)


@st.composite
def graphs(draw, least=2):
    n = draw(st.integers(least, 7))
    half = draw(arrays(float, (n, n), elements=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])))
    found = np.maximum(half, half.T)
    np.fill_diagonal(found, 1.0)
    return found


# Published vectors


def test_published_entropies(vectors):
    for case in vectors("semantic_entropy"):
        ids, logprobs = case["cluster_ids"], case["sequence_logprobs"]
        assert discrete_semantic_entropy(ids) == pytest.approx(case["discrete_entropy"], abs=1e-6)
        assert semantic_entropy(ids, logprobs) == pytest.approx(case["weighted_entropy_normalised"], abs=1e-6)
        assert kuhn_entropy(ids, logprobs) == pytest.approx(case["kuhn_mc_unnormalised"], abs=1e-6)


def test_published_graph_measures(vectors):
    n_texts = 0
    for case in vectors("spectral_uq"):
        if "W" in case:
            graph, expected = np.array(case["W"]), case["u_eigv"]
        else:
            graph, expected = jaccard(case["generations"], "split"), case["jaccard_u_eigv"]
            assert degree_uncertainty(graph) == pytest.approx(case["jaccard_degree_uncertainty"], abs=1e-6)
            n_texts += 1
        assert sum_eigen(graph) == pytest.approx(expected, abs=1e-6)
        assert eigenvalues(graph) == pytest.approx(case["eigenvalues"], abs=1e-6)
    assert n_texts == 15


# Similarity


@given(TEXTS)
def test_the_matrix_holds_the_values_of_the_pairs(texts):
    found = rouge_l_matrix(texts)
    expected = [[rouge_l(a, b).f1 for b in texts] for a in texts]
    assert np.array_equal(found, expected, equal_nan=True)


@settings(max_examples=40)
@given(st.lists(st.text("abc de-Ing 1,é", max_size=30), min_size=1, max_size=6))
def test_the_matrix_equals_rouge_score_to_the_last_digit(texts):
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    expected = [[scorer.score(a, b)["rougeL"].fmeasure for b in texts] for a in texts]
    assert np.nan_to_num(rouge_l_matrix(texts)).tolist() == expected


def test_more_words_than_one_plane_of_characters():
    # The words are numbered through the code points that are no characters.
    text = " ".join(f"word{i}" for i in range(56_000))
    assert rouge_l_matrix([text, "word55500 word55999 no"]).round(6).tolist()[0][1] == pytest.approx(
        4 / 56_003, abs=1e-6
    )


def test_jaccard_by_hand():
    assert jaccard(["New York", "new york.", "York"]).tolist() == [[1, 1, 0.5], [1, 1, 0.5], [0.5, 0.5, 1]]
    assert jaccard(["New York", "new york."], "split")[0, 1] == pytest.approx(1 / 3)
    assert jaccard(["巴黎", "巴西"])[0, 1] == pytest.approx(1 / 3)
    assert jaccard(["", ""]).tolist() == [[1, 0], [0, 1]] and jaccard([]).shape == (0, 0)


@given(TEXTS, st.randoms(use_true_random=False))
def test_similarities_do_not_know_the_order(texts, random):
    order = random.sample(range(len(texts)), len(texts))
    shuffled = [texts[i] for i in order]
    for measure in (jaccard, rouge_l_matrix):
        found = measure(texts)
        assert np.array_equal(measure(shuffled), found[np.ix_(order, order)], equal_nan=True)
        assert np.array_equal(found, found.T, equal_nan=True)


def test_agreement_by_hand():
    graph = np.array([[1, 0.2, 0.6], [0.2, 1, 1], [0.6, 1, 1]])
    assert [agreement(graph, i) for i in range(3)] == pytest.approx([0.4, 0.6, 0.8])
    assert mean_off_diagonal(graph) == pytest.approx(0.6)
    # The others of the first: alike, so each weighs 2; of the second: 0.6 alike, 1.6 each.
    assert [typical_agreement(graph, i) for i in range(2)] == pytest.approx([0.4, 0.6])
    assert math.isnan(typical_agreement([[1.0]]))
    assert math.isnan(agreement([[1.0]])) and math.isnan(mean_off_diagonal([[1.0]]))


# Embeddings


def test_embedding_variance_by_hand():
    # Two unit vectors at 90°: the centroid has length 1/√2, both are 1/√2 away.
    right_angle = [[1, 0], [0, 5]]
    assert embedding_variance(right_angle) == pytest.approx(0.5)
    assert embedding_variance(right_angle, "mean_distance") == pytest.approx(math.sqrt(0.5))
    assert embedding_variance(right_angle, "std_distance") == pytest.approx(0)
    # Three alike, one opposite: the centroid is half as long, 0.5 from three and 1.5 from one.
    three_to_one = [[1, 0]] * 3 + [[-1, 0]]
    assert centroid_distances(three_to_one).tolist() == [0.5, 0.5, 0.5, 1.5]
    assert embedding_variance(three_to_one) == 0.75
    assert embedding_variance(three_to_one, "mean_distance") == 0.75
    assert embedding_variance(three_to_one, "std_distance") == pytest.approx(math.sqrt(3) / 4)
    assert math.isnan(embedding_variance(np.empty((0, 3))))


@given(VECTORS)
def test_embedding_variance_is_one_minus_the_squared_length_of_the_centroid(rows):
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    found = embedding_variance(rows)
    assert -1e-12 <= found <= 1
    if (length > 0).all():
        assert found == pytest.approx(1 - np.linalg.norm((rows / length).mean(axis=0)) ** 2, abs=1e-9)
        assert 0 <= embedding_variance(rows[::-1]) == pytest.approx(found, abs=1e-12)


def test_consensus_takes_the_first_of_equals():
    assert consensus([[0, 1], [1, 0], [1, 0], [1, 0]]) == 1
    with pytest.raises(ValueError, match="no samples"):
        consensus(np.empty((0, 3)))


def test_numbers_tell_answers_apart_only_where_each_has_one_that_the_other_lacks():
    texts = ["fell 1914", "fell 1920", "fell", "fell 1914 or 1915"]
    apart = {(0, 1), (1, 3)}  # 1914 and 1920, 1920 and both others
    expected = [[float((min(i, j), max(i, j)) not in apart) for j in range(4)] for i in range(4)]
    assert content(texts).tolist() == expected


def test_cosine_has_no_negative_weights_and_survives_zeros():
    assert cosine([[1, 0], [-1, 0], [0, 0]]).tolist() == np.eye(3).tolist()


# Groups and entropies


def test_the_first_match_wins_and_the_order_may_matter():
    star = np.eye(4, dtype=bool)
    star[0] = star[:, 0] = True
    assert greedy_clusters(star).tolist() == [0, 0, 0, 0]
    leaf_first = np.roll(star, 1, axis=(0, 1))  # the hub comes second
    assert greedy_clusters(leaf_first).tolist() == [0, 0, 1, 2]
    found = order_dependence(star)
    # The hub first: one group; else it joins the first leaf and the other two stay alone.
    assert (found.given, found.low, found.high) == (1, 1, 3)


@given(graphs())
def test_every_order_is_grouped_as_if_it_were_given(graph):
    same, rng = graph >= 0.5, np.random.default_rng(3)
    orders = [rng.permutation(len(same)) for _ in range(20)]
    counts = [len(set(greedy_clusters(same[np.ix_(order, order)]))) for order in orders]
    given, low, high = order_dependence(same, n_orders=20, seed=3)
    assert (low, high) == (min(given, *counts), max(given, *counts))


@given(IDS)
def test_where_equivalence_is_transitive_the_order_does_not_matter(ids):
    same = np.equal.outer(ids, ids)
    assert order_dependence(same) == (len(set(ids)), len(set(ids)), len(set(ids)))
    assert greedy_clusters(same).tolist() == clusters_of_equals(ids).tolist()


@given(graphs())
def test_every_group_holds_what_its_first_is_equivalent_to(graph):
    same = graph >= 0.5
    ids = greedy_clusters(same)
    firsts = [int(np.argmax(ids == number)) for number in range(ids.max() + 1)]
    for i, number in enumerate(ids):
        assert same[i, firsts[number]] and not any(same[i, first] for first in firsts[:number] if first < i)


@pytest.mark.parametrize("wrong", [1, [1, 0, 1], [[1, 0]], [[[1, 0]]]])
def test_groups_need_a_square_matrix(wrong):
    for groups in (greedy_clusters, order_dependence):
        with pytest.raises(ValueError, match=r"equivalence must be a square matrix, got shape \("):
            groups(wrong)


def test_entailment_must_go_both_ways():
    assert both_ways([[1, 0.9], [0.2, 1]]).tolist() == [[True, False], [False, True]]


def test_entropies_by_hand():
    assert discrete_semantic_entropy([0, 0, 1, 2]) == pytest.approx(1.5 * math.log(2))
    logs = np.log([0.2, 0.1, 0.1])
    assert semantic_entropy([0, 0, 1], logs) == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert kuhn_entropy([0, 0, 1], logs) == pytest.approx(-(math.log(0.3) + math.log(0.1)) / 2)
    assert kuhn_entropy([0, 0], np.log([0.7, 0.6])) < 0
    for bad in ([NAN, -1.0], [-math.inf, -1.0]):
        assert math.isnan(semantic_entropy([0, 1], bad)) and math.isnan(kuhn_entropy([0, 1], bad))
    assert math.isnan(discrete_semantic_entropy([])) and math.isnan(semantic_entropy([], []))
    with pytest.raises(ValueError, match="differ in shape"):
        semantic_entropy([0, 1], [-1.0])


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-50, 0)), min_size=1, max_size=30))
def test_groups_are_weighed_to_the_last_bit_as_scipy_weighs_them(samples):
    ids, logs = (np.array(one) for one in zip(*samples, strict=True))
    mass = np.array([logsumexp(logs[ids == number]) for number in np.unique(ids)])
    assert kuhn_entropy(ids, logs) == -mass.mean()
    assert semantic_entropy(ids, logs) == entr(np.exp(mass - logsumexp(mass))).sum()


@given(IDS, st.randoms(use_true_random=False))
def test_entropy_is_bounded_and_blind_to_order_and_names(ids, random):
    found = discrete_semantic_entropy(ids)
    shuffled = random.sample(ids, len(ids))
    assert 0 <= found <= math.log(len(ids)) + 1e-12
    assert found == pytest.approx(discrete_semantic_entropy([7 - i for i in shuffled]))
    assert semantic_entropy(ids, [-1.0] * len(ids)) == pytest.approx(found)  # equally probable samples
    # To split a group never lowers it.
    split = [9 if i == ids.index(ids[0]) else number for i, number in enumerate(ids)]
    assert discrete_semantic_entropy(split) >= found - 1e-12
    assert number_of_semantic_sets(ids) == len(set(ids))


# Graphs


@pytest.mark.parametrize("n", [1, 2, 10])
def test_all_alike_and_all_different(n):
    alike, different = np.ones((n, n)), np.eye(n)
    assert sum_eigen(alike) == pytest.approx(1) and sum_eigen(different) == pytest.approx(n)
    assert degree_uncertainty(alike) == 0 and degree_uncertainty(different) == pytest.approx(1 - 1 / n)
    assert eccentricity(alike) == pytest.approx(0, abs=1e-9)
    assert eccentricity(different) == pytest.approx(math.sqrt(n - 1))
    assert kernel_language_entropy(different) == pytest.approx(math.log(n))
    assert kernel_language_entropy(alike) <= math.log(n)


def test_two_groups_by_hand():
    graph = np.kron(np.eye(2), np.ones((3, 3)))
    assert sum_eigen(graph) == pytest.approx(2) and degree_uncertainty(graph) == pytest.approx(0.5)
    # Rows of the two leading eigenvectors: (1/√3, 0) or (0, 1/√3); the centre is half-way between.
    assert answer_eccentricity(graph) == pytest.approx([math.sqrt(1 / 6)] * 6)
    assert eccentricity(graph) == pytest.approx(1)


def test_kernel_language_entropy_by_hand():
    # W = [[1, 1], [1, 1]]: L has eigenvalues 0 and 2; the scaled kernel has (1 ± e^-2t) / (1 + e^-2t) / 2 of 2.
    decay = math.exp(-0.6)
    shares = [1 / (1 + decay), decay / (1 + decay)]
    expected = -sum(share * math.log(share) for share in shares)
    assert kernel_language_entropy(np.ones((2, 2))) == pytest.approx(expected)


@given(graphs(), st.randoms(use_true_random=False))
def test_graph_measures_are_bounded_and_blind_to_order(graph, random):
    n = len(graph)
    order = random.sample(range(n), n)
    shuffled = graph[np.ix_(order, order)]
    for measure, low, high in (
        (sum_eigen, 1, n),
        (degree_uncertainty, 0, 1 - 1 / n),
        (eccentricity, 0, math.sqrt(n)),
        (kernel_language_entropy, 0, math.log(n)),
    ):
        assert low - 1e-9 <= measure(graph) <= high + 1e-9
        assert measure(shuffled) == pytest.approx(measure(graph), abs=1e-6)
    assert answer_eccentricity(shuffled) == pytest.approx(answer_eccentricity(graph)[order], abs=1e-6)


@given(graphs())
def test_less_likeness_is_more_uncertainty(graph):
    fainter = graph * 0.5
    np.fill_diagonal(fainter, 1.0)
    assert degree_uncertainty(fainter) >= degree_uncertainty(graph) - 1e-12
    assert sum_eigen(fainter) >= sum_eigen(graph) - 1e-9


def test_both_directions_are_averaged_and_nonsense_is_refused():
    assert degree_uncertainty([[0.3, 1.0], [0.0, 0.9]]) == 0.25
    for other in (1.0, [1.0], [[1.0, 0.0]]):
        with pytest.raises(ValueError, match="square"):
            sum_eigen(other)
    for bad in (NAN, -0.1, 1.1):
        with pytest.raises(ValueError, match="from 0 to 1"):
            sum_eigen([[1.0, bad], [bad, 1.0]])
    assert all(math.isnan(f(np.empty((0, 0)))) for f in (sum_eigen, degree_uncertainty, eccentricity))


# Words and what the model says


def test_lexical_diversity_by_hand():
    assert lexical_diversity(["a b", "A. c"]) == 0.75
    assert math.isnan(lexical_diversity(["", "?!"]))


def test_token_measures_by_hand():
    assert p_true(-1.0, -1.0) == 0.5 and p_true(-1.0, -math.inf) == 1
    assert math.isnan(p_true(-math.inf, -math.inf))
    assert contradiction_rate([[1, 0, 0, 1]]) == 0.5
    assert math.isnan(contradiction_rate([[NAN]])) and math.isnan(contradiction_rate(np.empty((0, 3))))
