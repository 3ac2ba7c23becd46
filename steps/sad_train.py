"""Training of the SAD networks (paper, sections 3 and 4.2), with the decision cost on dev choosing the epoch."""


def train_network(exp, conf, system):
    raise NotImplementedError
