"""Transformer-XL by its definition, in the shape of a transformers model: transformers 5 has dropped its own.

Written from Dai et al. 2019, section 3 and appendix B, and Grave et al. 2017, section 4: one query and one key at a
time where a model would shift, one word at a time where it would cut into bands. Weights have the published names.
"""

import math
from dataclasses import dataclass

import torch
import transformers
from torch import nn


class TransfoXLConfig(transformers.PretrainedConfig):
    """The keys of the published config.json."""

    model_type = "transfo-xl"

    def __init__(
        self,
        vocab_size=267735,
        cutoffs=(),
        d_model=1024,
        d_embed=1024,
        n_head=16,
        d_head=64,
        d_inner=4096,
        div_val=4,
        pre_lnorm=False,
        n_layer=18,
        mem_len=1600,
        clamp_len=-1,
        same_length=False,
        tie_projs=(),
        untie_r=True,
        layer_norm_epsilon=1e-5,
        hidden_act="relu",
        **kwargs,
    ):
        own = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        own["tie_projs"] = list(tie_projs) or [False] + [True] * len(cutoffs)
        for name, value in own.items():
            setattr(self, name, list(value) if isinstance(value, tuple) else value)
        super().__init__(**kwargs)


@dataclass
class Output(transformers.utils.ModelOutput):
    last_hidden_state: torch.Tensor = None
    logits: torch.Tensor = None
    hidden_states: tuple = None
    attentions: tuple = None
    mems: tuple = None


def sinusoid(distance, width):
    rates = [10000 ** (-2 * j / width) for j in range(width // 2)]
    return torch.tensor([math.sin(distance * r) for r in rates] + [math.cos(distance * r) for r in rates])


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner, d = config.n_head * config.d_head, config.d_model
        self.config = config
        self.qkv_net = nn.Linear(d, 3 * inner, bias=False)
        self.r_net = nn.Linear(d, inner, bias=False)
        self.o_net = nn.Linear(inner, d, bias=False)
        self.layer_norm = nn.LayerNorm(d, config.layer_norm_epsilon)
        if config.untie_r:
            self.r_w_bias = nn.Parameter(torch.zeros(config.n_head, config.d_head))
            self.r_r_bias = nn.Parameter(torch.zeros(config.n_head, config.d_head))

    def forward(self, x, memory, allowed, biases):
        config, (rows, length, _), remembered = self.config, x.shape, memory.shape[1]
        content, position = biases or (self.r_w_bias, self.r_r_bias)
        seen = torch.cat([memory, x], dim=1)
        if config.pre_lnorm:
            seen = self.layer_norm(seen)
        heads = (rows, -1, config.n_head, config.d_head)
        q, k, v = (part.reshape(heads) for part in self.qkv_net(seen).chunk(3, dim=-1))
        scores = torch.full((rows, config.n_head, length, remembered + length), -math.inf)
        for t in range(length):
            query = q[:, remembered + t]
            for s in range(remembered + length):
                distance = remembered + t - s
                if distance < 0:
                    continue
                if config.clamp_len > 0:
                    distance = min(distance, config.clamp_len)
                r = self.r_net(sinusoid(distance, config.d_model)).reshape(config.n_head, config.d_head)
                score = ((query + content) * k[:, s] + (query + position) * r).sum(-1) / math.sqrt(config.d_head)
                scores[:, :, t, s] = torch.where(allowed[:, t, s, None], score, -math.inf)
        probs = scores.softmax(-1)
        context = torch.einsum("bnts,bsnh->btnh", probs, v).reshape(rows, length, -1)
        x = x + self.o_net(context)
        return (x if config.pre_lnorm else self.layer_norm(x)), probs


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.pre_lnorm = config.pre_lnorm
        self.CoreNet = nn.Sequential(
            nn.Linear(config.d_model, config.d_inner),
            nn.ReLU(),
            nn.Identity(),
            nn.Linear(config.d_inner, config.d_model),
            nn.Identity(),
        )
        self.layer_norm = nn.LayerNorm(config.d_model, config.layer_norm_epsilon)

    def forward(self, x):
        return x + self.CoreNet(self.layer_norm(x)) if self.pre_lnorm else self.layer_norm(x + self.CoreNet(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dec_attn = Attention(config)
        self.pos_ff = FeedForward(config)


class WordEmbedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        edges = [0, *config.cutoffs, config.vocab_size]
        d, e = config.d_model, config.d_embed
        if config.div_val == 1:
            self.emb_layers = nn.ModuleList([nn.Embedding(config.vocab_size, e)])
            projections = [] if d == e else [(d, e)]
        else:
            widths = [e // config.div_val**i for i in range(len(edges) - 1)]
            sizes = [last - first for first, last in zip(edges, edges[1:], strict=False)]
            self.emb_layers = nn.ModuleList(nn.Embedding(*shape) for shape in zip(sizes, widths, strict=True))
            projections = [(d, width) for width in widths]
        self.emb_projs = nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in projections)

    def vector(self, word):
        """The vector of one word in the width of the model, before the scale."""
        band, place = (0, word) if self.config.div_val == 1 else band_of(self.config, word)
        x = self.emb_layers[band].weight[place]
        return self.emb_projs[band] @ x if len(self.emb_projs) else x

    def forward(self, ids):
        words = [self.vector(int(word)) for word in ids.flatten()]
        return torch.stack(words).reshape(*ids.shape, -1) * math.sqrt(self.config.d_model)


def band_of(config, word):
    """A word's band, and its place there."""
    edges = [0, *config.cutoffs, config.vocab_size]
    band = max(i for i, edge in enumerate(edges[:-1]) if word >= edge)
    return band, word - edges[band]


class TransfoXLPreTrainedModel(transformers.PreTrainedModel):
    config_class = TransfoXLConfig
    config: TransfoXLConfig
    base_model_prefix = "transformer"

    def _init_weights(self, module):
        pass


class TransfoXLModel(TransfoXLPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.word_emb = WordEmbedding(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layer))
        if not config.untie_r:
            self.r_w_bias = nn.Parameter(torch.zeros(config.n_head, config.d_head))
            self.r_r_bias = nn.Parameter(torch.zeros(config.n_head, config.d_head))
        self.post_init()

    def forward(self, input_ids, attention_mask=None, mems=None, **unused):
        """`mems`: the inputs of each layer, (b, m, d). The published model has no attention_mask."""
        config, (rows, length) = self.config, input_ids.shape
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        x = self.word_emb(input_ids)
        mems = mems or [x[:, :0]] * config.n_layer
        remembered = mems[0].shape[1]
        allowed = torch.zeros(rows, length, remembered + length, dtype=torch.bool)
        for t in range(length):
            for s in range(remembered + t + 1):
                near = not config.same_length or remembered + t - s < config.mem_len
                same = torch.ones(rows, dtype=torch.bool) if s < remembered else mask[:, t] == mask[:, s - remembered]
                allowed[:, t, s] = same & near
        biases = None if config.untie_r else (self.r_w_bias, self.r_r_bias)
        states, attentions, remember = [x], [], []
        for layer, memory in zip(self.layers, mems, strict=True):
            seen = torch.cat([memory, x], dim=1)
            remember.append(seen[:, max(0, seen.shape[1] - config.mem_len) :])
            x, probs = layer.dec_attn(x, memory, allowed, biases)
            x = layer.pos_ff(x)
            states.append(x)
            attentions.append(probs)
        return Output(last_hidden_state=x, hidden_states=tuple(states), attentions=tuple(attentions), mems=remember)


class Softmax(nn.Module):
    def __init__(self, config, embedding):
        super().__init__()
        self.config, self.embedding = config, [embedding]  # in a list, so that its weights are not saved again
        edges = [0, *config.cutoffs, config.vocab_size]
        if config.cutoffs:
            self.cluster_weight = nn.Parameter(torch.zeros(len(config.cutoffs), config.d_embed))
            self.cluster_bias = nn.Parameter(torch.zeros(len(config.cutoffs)))
        sizes = [last - first for first, last in zip(edges, edges[1:], strict=False)]
        self.out_layers = nn.ModuleList(map(Bias, [config.vocab_size] if config.div_val == 1 else sizes))
        self.out_projs = nn.ParameterDict()
        for i in range(len(edges) - 1):
            projected = config.div_val > 1 or config.d_embed != config.d_model
            if projected and not config.tie_projs[i]:
                shape = (config.d_model, config.d_embed // config.div_val**i)
                self.out_projs[str(i)] = nn.Parameter(torch.zeros(shape))

    def project(self, h, band):
        if str(band) in self.out_projs:
            return h @ self.out_projs[str(band)]
        projections = self.embedding[0].emb_projs
        return h @ projections[0 if self.config.div_val == 1 else band] if len(projections) else h

    def word_score(self, h, word):
        band, place = band_of(self.config, word)
        tables = self.embedding[0].emb_layers
        h = self.project(h, band)
        if self.config.div_val == 1:
            band, place = 0, word
        return h @ tables[band].weight[place] + self.out_layers[band].bias[place]

    def forward(self, h):
        """log p of every word, (b, t, v)."""
        config = self.config
        edges = [0, *config.cutoffs, config.vocab_size]
        bands = [
            torch.stack([self.word_score(h, word) for word in range(first, last)], dim=-1)
            for first, last in zip(edges, edges[1:], strict=False)
        ]
        if not config.cutoffs:
            return bands[0].log_softmax(-1)
        clusters = self.project(h, 0) @ self.cluster_weight.T + self.cluster_bias
        head = torch.cat([bands[0], clusters], dim=-1).log_softmax(-1)
        tails = [head[..., edges[1] + i, None] + tail.log_softmax(-1) for i, tail in enumerate(bands[1:])]
        return torch.cat([head[..., : edges[1]], *tails], dim=-1)


class Bias(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))


class TransfoXLLMHeadModel(TransfoXLPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.transformer = TransfoXLModel(config)
        self.crit = Softmax(config, self.transformer.word_emb)
        self.post_init()

    def forward(self, input_ids, **options):
        return Output(logits=self.crit(self.transformer(input_ids, **options).last_hidden_state))


transformers.AutoConfig.register("transfo-xl", TransfoXLConfig)
