"""A causal language model of Hugging Face transformers, run in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import BackendError, InputError
from core.llm.decoding import cut, generation_config, processors, stopping
from core.llm.hardware import best_dtype, choose_device
from core.llm.packaged import PACKAGED_MODEL, converted_model
from core.llm.quiet import quiet
from core.llm.storage import fingerprint
from core.llm.types import Capabilities, Completion, IsCancelled, Message, OnDone, Request

DTYPES = ("auto", "bfloat16", "float16", "float32")
_HUB_SECONDS = 10.0
_LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, ImportError)


class EmbeddedLLM:
    """Any causal model by name or path; by default SmolLM2-135M-Instruct from its Python package.

    Parameters
    ----------
    model : str or None
        None is the packaged model: nothing is asked of any network. Else a Hugging Face name or a
        folder, e.g. ``Qwen/Qwen2.5-7B-Instruct``.
    dtype : {"auto", "bfloat16", "float16", "float32"}
        ``auto`` is bfloat16 where the processor or the GPU computes in it, else float32.
    device : {"auto", "cpu", "cuda", ...}
        ``auto`` takes a GPU where there is one.
    batch_size : int
        Prompts worked on together on a GPU. On a processor it is always one at a time.

    Raises
    ------
    InputError
        An unknown dtype or a batch size below 1.
    BackendError
        The model cannot be found or loaded.

    Notes
    -----
    On a processor every prompt runs alone and without padding, so an answer depends on nothing but
    its own prompt: a resumed run equals an uninterrupted one. On a GPU prompts of similar length
    run together, padded on the left; in bfloat16 the last digits may then depend on the company a
    prompt keeps, and a resumed run may differ in a rare answer.

    Safe to share between threads: calls wait for each other.
    """

    def __init__(
        self, model: str | None = None, *, dtype: str = "auto", device: str = "auto", batch_size: int = 16
    ) -> None:
        if dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}.")
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, got {batch_size}.")
        packaged = model is None or model == PACKAGED_MODEL
        self._source = str(converted_model()) if packaged else str(model)
        self._local = packaged or Path(self._source).is_dir()
        self.name = PACKAGED_MODEL if packaged else str(model)
        self._device = choose_device(device)
        self._dtype = best_dtype(self._device) if dtype == "auto" else dtype
        self._batch = 1 if self._device == "cpu" else batch_size
        self._lock = threading.RLock()
        self._model: Any = None
        self._tokenizer, config = self._load_light()
        self._specials = _special_tokens(self._tokenizer)
        self._context = getattr(config.get_text_config(), "max_position_embeddings", None)
        self._revision = (
            fingerprint(Path(self._source)) if self._local else getattr(config, "_commit_hash", None)
        )

    @property
    def options(self) -> Mapping[str, object]:
        """Revision of the weights, dtype, device and batch size: all that may change an answer."""
        return {
            "revision": self._revision,
            "dtype": self._dtype,
            "device": self._device.split(":")[0],
            "batch_size": self._batch,
        }

    @property
    def capabilities(self) -> Capabilities:
        """Seeds; one call at a time; the model's own context length."""
        return Capabilities(seed=True, parallel=1, context_length=self._context, batch=self._batch)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens of the prompt these messages make."""
        with self._lock:
            return len(self._encode(messages))

    def generate(
        self,
        requests: Sequence[Request],
        on_done: OnDone | None = None,
        cancelled: IsCancelled | None = None,
    ) -> list[Completion]:
        """Answer every request; see `LLM.generate`.

        A prompt that does not fit into the context gets a completion with an error that names its
        length and the limit; nothing is cut silently.
        """
        results: dict[int, Completion] = {}
        with self._lock:
            prompts = [self._encode(request.messages) for request in requests]
            todo = []
            for index, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
                if self._context is not None and len(prompt) + request.max_tokens > self._context:
                    results[index] = _too_long(len(prompt), request.max_tokens, self._context)
                    if on_done is not None:
                        on_done(index, results[index])
                else:
                    todo.append(index)
            for batch in self._batches(todo, requests, prompts):
                done = self._run([requests[i] for i in batch], [prompts[i] for i in batch])
                for index, completion in zip(batch, done, strict=True):
                    results[index] = completion
                for index in batch:
                    if on_done is not None:
                        on_done(index, results[index])
        return [results[index] for index in range(len(requests))]

    def _batches(
        self, todo: list[int], requests: Sequence[Request], prompts: Sequence[list[int]]
    ) -> list[list[int]]:
        if self._batch == 1:
            return [[index] for index in todo]
        # Prompts of one length limit and similar size share a batch, so little is spent on padding.
        order = sorted(todo, key=lambda i: (requests[i].max_tokens, len(prompts[i]), i))
        batches: list[list[int]] = []
        for index in order:
            last = batches[-1] if batches else None
            if (
                last is not None
                and len(last) < self._batch
                and requests[last[0]].max_tokens == requests[index].max_tokens
            ):
                last.append(index)
            else:
                batches.append([index])
        return batches

    def _run(self, requests: Sequence[Request], prompts: Sequence[list[int]]) -> list[Completion]:
        import torch

        model = self._ready()
        width = max(map(len, prompts))
        pad = self._pad_token()
        ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts], device=self._device)
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=self._device)
        start = time.perf_counter()
        try:
            with torch.inference_mode(), quiet():
                output = model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    generation_config=generation_config(model, requests[0].max_tokens, pad),
                    logits_processor=processors(requests),
                    stopping_criteria=stopping(self._tokenizer, requests, width),
                )
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            raise BackendError(
                f"{self.name} ran out of GPU memory with {len(prompts)} prompts of up to {width} tokens; "
                "choose a smaller batch size or model."
            ) from error
        share = (time.perf_counter() - start) / len(requests)
        rows = output[:, width:].tolist()
        return [
            self._completion(request, len(prompt), row, share)
            for request, prompt, row in zip(requests, prompts, rows, strict=True)
        ]

    def _completion(self, request: Request, n_prompt: int, row: list[int], latency: float) -> Completion:
        ends = self._end_tokens()
        length = next((i for i, token in enumerate(row) if token in ends), None)
        tokens = row if length is None else row[:length]
        text, stopped = cut(self._tokenizer.decode(tokens, skip_special_tokens=True), request.stop)
        reason = "stop" if stopped or length is not None else "length"
        return Completion(text, reason, n_prompt, len(tokens), latency)

    def _encode(self, messages: Sequence[Message]) -> list[int]:
        turns = [{"role": m.role, "content": self._plain(m.content)} for m in messages]
        if not self._tokenizer.chat_template:
            # A model without a chat format continues plain text.
            return list(self._tokenizer("\n\n".join(turn["content"] for turn in turns))["input_ids"])
        # Some templates know no system turn; what it says then opens the user's turn.
        for attempt in (turns, _without_system(turns)):
            try:
                return self._apply_template(attempt)
            except Exception as error:  # the template is a program of the model's own: it may raise anything
                cause = error
        raise BackendError(f"The chat format of {self.name} does not accept the prompt: {cause}.") from cause

    def _apply_template(self, turns: list[dict[str, str]]) -> list[int]:
        prefilled = turns[-1]["role"] == "assistant"
        ids = self._tokenizer.apply_chat_template(
            turns, add_generation_prompt=not prefilled, continue_final_message=prefilled, return_dict=True
        )["input_ids"]
        return list(ids)

    def _plain(self, content: str) -> str:
        # A passage that spells out the model's own control tokens must not become a turn of the talk.
        for token in self._specials:
            if token in content:
                content = content.replace(token, f"{token[0]} {token[1:]}")
        return content

    def _ask_hub(self) -> None:
        """Find out quickly whether the model can be fetched; without the hub, what is here must do.

        Left to itself, transformers retries an unreachable hub for more than a minute.
        """
        from huggingface_hub import HfApi, try_to_load_from_cache

        try:
            HfApi().model_info(self._source, timeout=_HUB_SECONDS)
        except Exception as error:  # no network, no such model, no permission, not even a valid name
            try:
                cached = isinstance(try_to_load_from_cache(self._source, "config.json"), str)
            except ValueError:
                cached = False
            if not cached:
                raise BackendError(
                    f"The model {self.name} is no folder here, was not downloaded before, and the Hugging "
                    f"Face hub does not give it ({type(error).__name__}); check the name and the network."
                ) from error
            self._local = True

    def _load_light(self) -> tuple[Any, Any]:
        from transformers import AutoConfig, AutoTokenizer

        if not self._local:
            self._ask_hub()
        try:
            with quiet():
                config = AutoConfig.from_pretrained(self._source, local_files_only=self._local)
                tokenizer = AutoTokenizer.from_pretrained(self._source, local_files_only=self._local)
        except _LOAD_ERRORS as error:
            raise self._unloadable(error) from error
        return tokenizer, config

    def _ready(self) -> Any:
        if self._model is None:
            import torch
            from transformers import AutoModelForCausalLM, GenerationConfig

            try:
                with quiet():
                    model = AutoModelForCausalLM.from_pretrained(
                        self._source, dtype=getattr(torch, self._dtype), local_files_only=self._local
                    )
                    model = model.to(self._device).eval()
            except _LOAD_ERRORS as error:
                raise self._unloadable(error) from error
            # A model's own habits (repetition penalty, top_k …) would make temperature 0 mean
            # something else for each model; only its end tokens are kept.
            own = model.generation_config
            model.generation_config = GenerationConfig(eos_token_id=own.eos_token_id)
            self._model = model
        return self._model

    def _unloadable(self, error: Exception) -> BackendError:
        first = str(error).strip().split("\n")[0] or type(error).__name__
        return BackendError(f"The model {self.name} cannot be loaded: {first}")

    def _end_tokens(self) -> frozenset[int]:
        own = self._model.generation_config.eos_token_id
        listed = own if isinstance(own, list) else [own]
        return frozenset(t for t in (*listed, self._tokenizer.eos_token_id) if t is not None)

    def _pad_token(self) -> int:
        for token in (self._tokenizer.pad_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        return 0


def _too_long(n_prompt: int, n_answer: int, limit: int) -> Completion:
    return Completion(
        "",
        "error",
        n_prompt,
        0,
        0.0,
        error=f"The prompt has {n_prompt:,} tokens and the answer may take {n_answer:,}, but the model "
        f"reads {limit:,} in all: use fewer or shorter passages.",
    )


def _without_system(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    rest = [dict(turn) for turn in turns if turn["role"] != "system"]
    if system and rest:
        rest[0]["content"] = "\n\n".join((*system, rest[0]["content"]))
    return rest


def _special_tokens(tokenizer: Any) -> tuple[str, ...]:
    added = {str(t) for t in tokenizer.added_tokens_decoder.values() if t.special}
    return tuple(sorted(t for t in added | set(tokenizer.all_special_tokens) if len(t) > 1))
