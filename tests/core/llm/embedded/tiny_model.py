"""A real transformers model with random weights and a vocabulary of bytes: every path in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TURNS = (
    "{% for m in messages %}<|turn|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system turn') }}{% endif %}" + TURNS
)
# Some tokens of several letters, one that reaches over the border between "Answer:" and ")".
MERGES = (("t", "r"), ("tr", "u"), ("tru", "e"), ("Ġ", "P"), ("{", '"'), (":", ")"), ("a", "b"))


def tiny_model(folder: Path, *, template: str | None = TURNS, ends: bool = True, context: int = 256) -> str:
    """Write a model into a folder; return its path.

    ``template`` is its chat format; without ``ends`` it has no token that ends an answer.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    from core.llm.packaged import quiet

    letters = [*bytes_to_unicode().values(), *(a + b for a, b in MERGES)]
    core = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[*MERGES]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    special = {"eos_token": "<|end|>"} if ends else {}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|pad|>", extra_special_tokens=["<|turn|>"], **special
    )
    tokenizer.chat_template = template
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer) + 5,  # some more rows than tokens, as most published models have
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=context,
        initializer_range=0.5,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with quiet():
        tokenizer.save_pretrained(folder)
        LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one core: so small a model gains nothing from more, and loses on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
