// The module in both tongues.

export const kModule = `import { load } from 'attention-wasm';
import { x, parameters } from './given.js';

const attention = await load();
const layer = attention.multiHeadAttention({
  dModel: 24,
  numHeads: 2,
  isCausal: true,
  rope: { style: 'interleaved' },
});
layer.loadStateDict(parameters);
const { output, weights } = layer.forward(x, { needWeights: true });

console.log('output', output.shape, output.data.slice(0, 4));
console.log('weights', weights.shape, weights.data.slice(17, 19));
export { output };
`;

export const kPyTorch = `class CausalSelfAttention(nn.Module):
    def __init__(self, d_model=24, heads=2):
        super().__init__()
        self.heads = heads
        linear = lambda: nn.Linear(d_model, d_model, bias=False)
        self.q_proj, self.k_proj = linear(), linear()
        self.v_proj, self.out_proj = linear(), linear()

    def forward(self, x):  # [B, T, d]
        B, T, d = x.shape
        split = lambda y: y.view(B, T, self.heads, -1).transpose(1, 2)
        q, k = rope(split(self.q_proj(x))), rope(split(self.k_proj(x)))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        y = weights @ split(self.v_proj(x))  # [B, H, T, D]
        return self.out_proj(y.transpose(1, 2).reshape(B, T, d))

def rope(x):  # turns the pairs (2i, 2i + 1) of [B, H, T, D]
    T, D = x.shape[-2:]
    theta = 10000.0 ** (-torch.arange(0, D, 2, dtype=x.dtype) / D)
    angle = torch.arange(T)[:, None] * theta
    cos, sin = angle.cos(), angle.sin()
    x1, x2 = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((x1 * cos - x2 * sin, x2 * cos + x1 * sin), -1)
    return pairs.flatten(-2)
`;
