"""When an utterance of a stream is over, from what was decoded of it."""
from pyspeech.transducer.decoding_config import Endpointing  # noqa: F401 (stands where importing it is fast)


def is_endpoint(num_frames, last_frame, config, frame_seconds):
    """Whether any rule of `config` (Endpointing) ends an utterance here.

    num_frames: encoder frames decoded; last_frame: that of the best hypothesis's last symbol, None where it has none;
    frame_seconds: seconds a frame.
    """
    seconds = num_frames * frame_seconds
    if last_frame is None:
        return seconds >= min(config.silence_before, config.longest)
    silence = (num_frames - 1 - last_frame) * frame_seconds
    return silence >= config.silence_after or seconds >= config.longest
