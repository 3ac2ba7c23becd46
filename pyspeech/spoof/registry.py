"""The front ends and the networks of the detector of fake audio, by name.

Each is an entry here and a module with its class. Nothing here imports torch.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """Entry of a front end.

    place: "module:class", a front_ends.FrontEnd.
    sampling_rate: the only one that it takes, in Hz; None: any.
    """

    place: str
    sampling_rate: int | None = None


FRONT_ENDS = {
    "logmel": Entry("pyspeech.spoof.front_ends.spectra:LogMel"),
    "linear": Entry("pyspeech.spoof.front_ends.spectra:LogSpectrum"),
    "self_supervised": Entry("pyspeech.spoof.front_ends.self_supervised:SelfSupervised", sampling_rate=16000),
}

NETWORKS = {  # "module:class", a networks.DetectorNetwork
    "lcnn_blstm": "pyspeech.spoof.networks:LcnnBlstm",
    "resnet": "pyspeech.spoof.resnet:ResNet",
}
