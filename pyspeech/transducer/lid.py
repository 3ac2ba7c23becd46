"""Language identification on the encoder's output, frame by frame (Joshi et al. 2021, section 4.2)."""
import torch


class LidHead(torch.nn.Module):
    """Linear layers with ReLU between them: config.lid_sizes hidden units, then the languages.

    The paper does not give its hidden layers; the default sizes lead to the number of parameters in its Table 6.
    """

    def __init__(self, config, languages):
        super().__init__()
        sizes = [config.encoder_size, *config.lid_sizes, languages]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(*pair) for pair in zip(sizes, sizes[1:]))

    def forward(self, encoded):
        """encoded (..., D) -> log posteriors (..., languages)."""
        for layer in self.layers[:-1]:
            encoded = torch.relu(layer(encoded))
        return torch.log_softmax(self.layers[-1](encoded), dim=-1)
