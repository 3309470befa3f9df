"""A causal language model of Hugging Face transformers, run in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import BackendError, InputError
from core.llm.embedded import loading
from core.llm.embedded.decoding import (
    Beginnings,
    Ending,
    Grammars,
    Guided,
    WordFirst,
    generation_config,
    logits_processors,
    to_completion,
)
from core.llm.embedded.loading import ChatFormat
from core.llm.embedded.scoring import Prompts, Recorder, batches, fitting, left_padded, together
from core.llm.embedded.screen import Screen
from core.llm.packaged import (
    PACKAGED_MODEL,
    converted_model,
    fingerprint,
    quiet,
    require_local_models,
)
from core.llm.types import (
    CANCEL_SECONDS,
    Capabilities,
    Completion,
    IsCancelled,
    Message,
    OnDone,
    Request,
    prompt_too_long,
    stop_if,
)

if TYPE_CHECKING:
    from core.llm.embedded.prefixes import PrefixReader

Read = Callable[[], Any]
DTYPES = ("float32", "bfloat16", "float16")
_SAMPLES = 10  # of one prompt, drawn together: each keeps its own copy of what was read


class EmbeddedLLM:
    """Any causal model by name or path; by default SmolLM2-135M-Instruct from its Python package.

    On a processor, in single precision, the requests of a call are worked on together: what their prompts
    begin with is read once, and the answers are written side by side; the keys and values of their tokens
    take at most 2 GiB, else there are several batches. The answers are those of each prompt by itself: sums
    differ in their last digits only, and `bench/engine.py` compares every token. Models whose memory cannot
    be cut back to the beginning of a prompt, as recurrent ones, answer one prompt at a time.

    On a GPU prompts of similar length run together, padded on the left, with a processor's answers as far as
    `bench/gpu.py` has compared them.

    In half precision rounding shows: an answer depends on the other prompts of its batch, and of 36 passages
    without which the packaged model's answer changes 18 were found, and 7 others. On a processor every prompt
    then runs alone, without padding, and only samples of one prompt are drawn together, up to ten.

    Safe to share between threads: calls wait for each other.

    Parameters
    ----------
    model : str or None
        None is the packaged model, which needs no network. Else a Hugging Face name or a folder, e.g.
        ``Qwen/Qwen2.5-7B-Instruct``; `BackendError` where it cannot be found or loaded.
    dtype : {"float32", "bfloat16", "float16"}
        The two of half precision are for models that do not fit into memory otherwise.
    device : {"auto", "cpu", "cuda", ...}
        ``auto`` takes a GPU if available.
    batch_size : int
        Prompts processed together on a GPU, at least 1.
    """

    kind = "embedded"
    word_first = True  # see `WordFirst`; only comparisons of prompts turn it off

    def __init__(
        self, model: str | None = None, *, dtype: str = "float32", device: str = "auto", batch_size: int = 16
    ) -> None:
        if dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}.")
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, got {batch_size}.")
        self.name = PACKAGED_MODEL if model is None else model
        require_local_models(f"The model {self.name}")
        self._source = str(converted_model()) if self.name == PACKAGED_MODEL else self.name
        self._device = loading.choose_device(device)
        self._dtype = dtype
        self._batch = 1 if self._device == "cpu" else batch_size
        self._lock = threading.RLock()
        self._model: Any = None
        self._local = Path(self._source).is_dir() or not loading.ask_hub(self._source, self.name)
        self._tokenizer, config = loading.load_tokenizer(self._source, self.name, local=self._local)
        self._chat = ChatFormat(self._tokenizer, self.name)
        self._grammars: Grammars | None = None
        self._screen: Screen | None = None
        self._beginnings: Beginnings | None = None
        self._context = getattr(config.get_text_config(), "max_position_embeddings", None)
        self._revision = (
            fingerprint(Path(self._source)) if self._local else getattr(config, "_commit_hash", None)
        )

    @property
    def options(self) -> Mapping[str, object]:
        """Everything that may change an answer: weights, dtype, device, batch size, how it begins."""
        return {
            "revision": self._revision,
            "dtype": self._dtype,
            "device": self._device.split(":")[0],
            "batch_size": self._batch,
            **({"begins_with": "a word"} if self.word_first else {}),
        }

    @property
    def capabilities(self) -> Capabilities:
        """Everything a model in this process can do, one call at a time."""
        return Capabilities(
            token_logprobs=True,
            answer_logprob=True,
            screen=True,
            json_schema=True,
            seed=True,
            context_length=self._context,
            batch=self._batch,
            prefill=True,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a run by this model should say about its answers."""
        if self._dtype == "float32":
            return ()
        return (
            f"Rounded: the model computes in {self._dtype}, so answers change, or stay the same, by "
            "rounding. Measure influence in float32.",
        )

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the number of prompt tokens of these messages."""
        with self._lock:
            return len(self._chat.encode(messages))

    def generate(
        self, requests: Sequence[Request], on_done: OnDone | None = None, cancelled: IsCancelled | None = None
    ) -> list[Completion]:
        """Answer every request; see `LLM.generate`.

        A prompt that does not fit into the context, or a JSON Schema that cannot be compiled, gets a
        completion with an error; nothing is truncated. ``cancelled`` is checked before each prompt and
        between tokens. An answer without a schema has at least one word. Log-probabilities are the model's
        own, before temperature and schema, of the tokens of the text only.
        """
        results: dict[int, Completion] = {}

        def done(indices: Sequence[int], completions: Sequence[Completion]) -> None:
            results.update(zip(indices, completions, strict=True))
            for index in indices:
                if on_done is not None:
                    on_done(index, results[index])

        with self._alone(cancelled):
            prompts = [self._chat.encode(request.messages) for request in requests]
            todo = []
            for index, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
                refusal = self._refusal(request, len(prompt))
                if refusal is None:
                    todo.append(index)
                else:
                    done([index], [refusal])

            for batch, read in self._batches(requests, prompts, todo, cancelled):
                stop_if(cancelled)
                asked = [requests[i] for i in batch], [prompts[i] for i in batch]
                done(batch, self._run(*asked, read, cancelled))
        return [results[index] for index in range(len(requests))]

    def score(
        self,
        messages: Sequence[Sequence[Message]],
        answers: Sequence[str],
        cancelled: IsCancelled | None = None,
    ) -> list[tuple[float, ...] | None]:
        """Return the natural log-probability of each token of given answers; their sum is the answer's.

        None for an answer without tokens, or where it does not fit into the context with its prompt. Where a
        conversation ends with the beginning of the model's turn, the answer continues it; its outer white
        space does not count. Cost: each different prompt is read once, and each answer once.
        """
        results: dict[int, tuple[float, ...]] = {}
        with self._alone(cancelled):
            pairs = [self._chat.encode_answer(*pair) for pair in zip(messages, answers, strict=True)]
            lengths = [len(prompt) + len(answer) for prompt, answer in pairs]
            most = max(lengths, default=0) if self._context is None else self._context
            todo = [i for i, (_, answer) in enumerate(pairs) if answer and lengths[i] <= most]
            reader = self._prefix_reader() if todo else None
            if reader is not None:
                for i in sorted(todo, key=lambda i: pairs[i]):
                    stop_if(cancelled)
                    with self._computing(1, lengths[i]):
                        results[i] = reader.answer_logprobs(*pairs[i])
            else:
                self._score_padded(pairs, todo, results, cancelled)
        return [results.get(i) for i in range(len(pairs))]

    def screen(
        self,
        messages: Sequence[Message],
        without: Sequence[Sequence[Message]],
        answers: Sequence[str],
        cancelled: IsCancelled | None = None,
    ) -> list[list[tuple[float, ...] | None]]:
        """Estimate what `score` returns for answers to a prompt, and to others that each lack a part of it.

        ``[prompt][answer]``, the whole prompt first; see `core.llm.embedded.screen`. None where `score` has
        none, and where no estimate is possible. Cost: the prompt once; what follows its last passage, for
        each prompt and answer.
        """
        with self._alone(cancelled):
            full, *rest = map(self._chat.encode, (messages, *without))
            tokens = [self._chat.encode_answer(messages, answer)[1] for answer in answers]
            if self._context is not None:
                tokens = [one if len(full) + len(one) <= self._context else [] for one in tokens]
            with self._computing(len(rest) + 1, len(full)):
                if self._screen is None:
                    self._screen = Screen(self._ready(), self._device)
                return self._screen.scores(full, rest, tokens, cancelled)

    def _refusal(self, request: Request, n_prompt: int) -> Completion | None:
        """Return the completion of a request that the model cannot answer, else None."""
        if self._context is not None and n_prompt + request.max_tokens > self._context:
            limit = f"the model reads {self._context:,} in all"
            return Completion.failed(prompt_too_long(f"{n_prompt:,}", request.max_tokens, limit), n_prompt)
        if request.schema is not None:
            try:
                self._follow(request.schema)
            except InputError as error:
                return Completion.failed(str(error), n_prompt)
        return None

    def _follow(self, schema: str) -> Guided:
        if self._grammars is None:
            own = self._tokenizer.eos_token_id
            ends = loading.end_tokens(self._tokenizer, self._ready())
            self._grammars = Grammars(self._tokenizer, own if own is not None else min(ends, default=None))
        return self._grammars.guide(schema)

    def _score_padded(
        self,
        pairs: Sequence[tuple[list[int], list[int]]],
        todo: Sequence[int],
        results: dict[int, tuple[float, ...]],
        cancelled: IsCancelled | None,
    ) -> None:
        lengths = [len(prompt) + len(answer) for prompt, answer in pairs]
        of_prompt: dict[tuple[int, ...], list[int]] = {}
        for i in todo:
            of_prompt.setdefault(tuple(pairs[i][0]), []).append(i)
        prompts = list(of_prompt)
        for some in batches(range(len(prompts)), self._batch, lambda p: (0, len(prompts[p]))):
            stop_if(cancelled)
            model, pad = self._ready(), loading.pad_token(self._tokenizer)
            chosen = [list(prompts[p]) for p in some]
            with self._computing(len(some), max(map(len, chosen))):
                read = Prompts(model, chosen, pad, self._device)
            which = {i: n for n, p in enumerate(some) for i in of_prompt[prompts[p]]}
            for batch in batches(list(which), self._batch, lambda i: (0, lengths[i])):
                stop_if(cancelled)
                with self._computing(len(batch), max(lengths[i] for i in batch)):
                    scored = read.answer_logprobs([(which[i], pairs[i][1]) for i in batch])
                results.update(zip(batch, scored, strict=True))

    def _prefix_reader(self) -> PrefixReader | None:
        """Return what reads prompts that begin alike, None where that is impossible or changes answers."""
        from core.llm.embedded.prefixes import PrefixReader

        model = self._ready()
        # In half precision the order of reading would show; a GPU reads a batch at once.
        exact = self._batch == 1 and self._dtype == "float32"
        return PrefixReader(model) if exact and PrefixReader.suits(model) else None

    def _batches(
        self,
        requests: Sequence[Request],
        prompts: Sequence[list[int]],
        todo: Sequence[int],
        cancelled: IsCancelled | None,
    ) -> Iterator[tuple[list[int], Read]]:
        """Yield what is answered together, and how its prompts are read: as a cache, or by ``generate``."""
        reader = self._prefix_reader() if todo else None
        if reader is not None:
            check = partial(stop_if, cancelled)
            order = sorted(todo, key=lambda i: (requests[i].max_tokens, prompts[i]))
            for batch in fitting(
                order, reader.most_tokens, lambda i: (requests[i].max_tokens, len(prompts[i]))
            ):
                asked = [prompts[i] for i in batch]
                yield batch, partial(reader.together, asked, requests[batch[0]].max_tokens, check)
            return
        # A processor answers one prompt at a time, but many samples of it.
        most = _SAMPLES if self._batch == 1 else self._batch
        sampled = [i for i in todo if requests[i].temperature > 0]
        groups = together(sampled, most, lambda i: (*prompts[i], requests[i].max_tokens))
        for group in (group for group in groups if len(group) > 1):
            yield group, partial(self._copies, prompts[group[0]], len(group))
            todo = [i for i in todo if i not in group]
        for batch in batches(todo, self._batch, lambda i: (requests[i].max_tokens, len(prompts[i]))):
            yield batch, lambda: None

    def _copies(self, prompt: list[int], n: int) -> Any:
        return Prompts(self._ready(), [prompt], loading.pad_token(self._tokenizer), self._device).copies(n)

    def _run(
        self,
        requests: Sequence[Request],
        prompts: Sequence[list[int]],
        read: Read,
        cancelled: IsCancelled | None,
    ) -> list[Completion]:
        from transformers import StoppingCriteriaList

        model = self._ready()
        pad = loading.pad_token(self._tokenizer)
        ids, mask = left_padded(prompts, pad, self._device)
        width = ids.shape[1]
        guides = [self._follow(r.schema) if r.schema is not None else None for r in requests]
        recorder = Recorder() if any(r.logprobs for r in requests) else None
        ending = Ending(self._tokenizer, requests, guides, width, cancelled)
        start = time.perf_counter()
        with self._computing(len(prompts), width):
            cache = read()
            output = model.generate(
                input_ids=ids,
                attention_mask=mask,
                **({} if cache is None else {"past_key_values": cache}),
                generation_config=generation_config(model, requests[0].max_tokens, pad),
                logits_processor=logits_processors(
                    requests, guides, recorder, self._word_first(requests, width)
                ),
                stopping_criteria=StoppingCriteriaList([ending]),
            )[:, width:]
        share = (time.perf_counter() - start) / len(requests)
        logprobs = recorder.rows(output) if recorder is not None else None
        ends = loading.end_tokens(self._tokenizer, model)
        completions = []
        for row, (request, tokens) in enumerate(zip(requests, output.tolist(), strict=True)):
            found = logprobs[row] if logprobs is not None and request.logprobs else None
            done = to_completion(self._tokenizer, request, tokens, ends, ending.lengths[row], found)
            completions.append(replace(done, prompt_tokens=len(prompts[row]), latency=share))
        return completions

    def _word_first(self, requests: Sequence[Request], width: int) -> WordFirst | None:
        if not self.word_first:
            return None
        if self._beginnings is None:
            self._beginnings = Beginnings(self._tokenizer)
        return WordFirst(self._beginnings, self._tokenizer, requests, width)

    @contextmanager
    def _alone(self, cancelled: IsCancelled | None) -> Iterator[None]:
        """Wait for other threads' calls to end, or for a cancel."""
        while not self._lock.acquire(timeout=CANCEL_SECONDS):
            stop_if(cancelled)
        try:
            stop_if(cancelled)
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _computing(self, n_prompts: int, width: int) -> Iterator[None]:
        import torch

        try:
            with torch.inference_mode(), quiet():
                yield
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            half = ", or dtype bfloat16, whose answers are rounded" if self._dtype == "float32" else ""
            raise BackendError(
                f"{self.name} ran out of GPU memory with a batch of {n_prompts}, of up to {width:,} tokens "
                f"each; choose a smaller batch size or model{half}."
            ) from error

    def _ready(self) -> Any:
        if self._model is None:
            self._model = loading.load_model(
                self._source, self.name, dtype=self._dtype, device=self._device, local=self._local
            )
        return self._model
