"""The encoder-decoder of Vaswani et al. 2017 and its relative form (Shaw et al. 2018), written once more in NumPy."""

import numpy as np
from keras import ops


def forward(backbone, x, limit=None):
    """The states of the encoder and of the decoder for rows without packing, in double precision.

    Args:
        backbone: garden's, for its weights; a name in them is all that is used of it.
        x: the four inputs.
        limit: k of relative positions; None adds sinusoids to the embeddings.
    """
    weights = {v.path: ops.convert_to_numpy(v).astype("float64") for v in backbone.weights}
    heads, epsilon = backbone.num_heads, backbone.layer_norm_epsilon
    table = weights["token_embedding/embeddings"]
    width = table.shape[1]

    def embed(ids, real):
        states = table[ids] * np.sqrt(width)
        if limit is not None:
            return states
        for b, t in np.ndindex(ids.shape):
            place = real[b, :t].sum() if real[b, t] else 0
            for j in range(0, width, 2):
                angle = place / 10000 ** (j / width)
                states[b, t, j : j + 2] += np.sin(angle), np.cos(angle)
        return states

    def norm(states, name):
        centred = states - states.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        return scaled * weights[f"{name}/gamma"] + weights[f"{name}/beta"]

    def attend(queries, keys, allowed, name, relative):
        q, k, v = (
            s @ weights[f"{name}/{part}/kernel"] for s, part in ((queries, "query"), (keys, "key"), (keys, "value"))
        )
        q, k, v = (s.reshape(*s.shape[:2], heads, -1) for s in (q, k, v))
        out = np.zeros_like(q)
        for b, n, t in np.ndindex(q.shape[0], heads, q.shape[1]):
            near, far = k[b, :, n], v[b, :, n]
            if relative:
                places = np.clip(np.arange(k.shape[1]) - t, -limit, limit) + limit
                own = min(n, len(weights[f"{name}/relative_keys"]) - 1)
                near = near + weights[f"{name}/relative_keys"][own, places]
                far = far + weights[f"{name}/relative_values"][own, places]
            scores = np.where(allowed[b, t], near @ q[b, t, n] / np.sqrt(q.shape[-1]), -1e9)
            probs = np.exp(scores - scores.max())
            out[b, t, n] = probs / probs.sum() @ far
        return out.reshape(*out.shape[:2], -1) @ weights[f"{name}/output_dense/kernel"]

    def think(states, name):
        hidden = states @ weights[f"{name}/intermediate_dense/kernel"] + weights[f"{name}/intermediate_dense/bias"]
        return np.maximum(hidden, 0) @ weights[f"{name}/output_dense/kernel"] + weights[f"{name}/output_dense/bias"]

    def block(states, name, allowed, source=None, source_allowed=None):
        added = attend(states, states, allowed, f"{name}/attention", limit is not None)
        states = norm(states + added, f"{name}/attention_norm")
        if source is not None:
            added = attend(states, source, source_allowed, f"{name}/cross_attention", False)
            states = norm(states + added, f"{name}/cross_attention_norm")
        return norm(states + think(states, f"{name}/feedforward"), f"{name}/feedforward_norm")

    read, written = x["encoder_padding_mask"], x["decoder_padding_mask"]
    source = embed(x["encoder_token_ids"], read)
    for i in range(len(backbone.encoder_blocks)):
        source = block(source, f"encoder_block_{i}", read[:, None, :] == read[:, :, None])
    target = embed(x["decoder_token_ids"], written)
    causal = np.tril(np.ones((written.shape[1],) * 2)) > 0
    for i in range(len(backbone.decoder_blocks)):
        own = (written[:, None, :] == written[:, :, None]) & causal
        target = block(target, f"decoder_block_{i}", own, source, written[:, :, None] == read[:, None, :])
    return source, target
