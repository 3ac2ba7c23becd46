"""The commands of `pyspeech`; in a clone, utils/*.py are doors to the same functions.

pyspeech detect call.wav         utils/detect_speech.py call.wav
"""

# {command: (module of this package, its door in utils/, what it does)}
COMMANDS = {
    "detect": ("detect", "detect_speech", "find speech in recordings"),
    "transcribe": ("transcribe", "transcribe", "recognise speech"),
    "train-lm": ("train_lm", "train_lm", "estimate a language model for transcribe"),
    "align": ("align", "align", "times of the words and symbols of a given text"),
    "units": ("units", "encode_units", "encode speech as discrete units"),
    "kmeans": ("kmeans", "kmeans_units", "discrete units by k-means from features"),
    "speak": ("speak", "resynthesize", "resynthesise speech from its units"),
    "detect-fake": ("detect_fake", "detect_fake", "tell genuine from fake speech"),
    "anonymize": ("anonymize", "anonymize", "hide who speaks (McAdams coefficient)"),
    "score sad": ("score_sad", "score_sad", "official detection cost of speech segments"),
    "score wer": ("score_wer", "score_wer", "word error rates with confidence intervals"),
    "score abx": ("score_abx", "score_abx", "ABX error of units"),
    "score bitrate": ("score_bitrate", "score_bitrate", "bitrate of units"),
    "score units": ("score_units", "score_units", "phone purity and PNMI of units"),
    "score eer": ("score_eer", "score_eer", "EER, Cllr and min t-DCF"),
    "score segments": ("score_segments", "score_segments", "EER over segments of partly fake recordings"),
    "report": ("report", "report", "a page to look at and listen to experiments"),
    "kaldi export": ("kaldi_export", "kaldi_export", "manifest to Kaldi data directory"),
    "kaldi import": ("kaldi_import", "kaldi_import", "check a Kaldi data directory, make a manifest of it"),
    "average results": ("average_results", "average_results", "mean and deviation of figures over several runs"),
    "average detectors": ("average_detectors", "average_detectors", "average the weights of detectors of fake speech"),
    "submission validate": ("submission_validate", "validate_submission", "check a ZeroSpeech submission"),
    "submission merge": ("submission_merge", "merge_submissions", "join ZeroSpeech submissions of several languages"),
    "export-onnx": ("export_onnx", "export_onnx", "write a detector as ONNX, a transducer for sherpa-onnx"),
}
