"""Corpora, one module each: from what is distributed, or what packages bring, to Lhotse manifests; and what they share.

transcribed, spoof_manifests   the checks and manifests of one task's corpora, from lists of their utterances
audio_checks, problems         whether audio can be used, and how what is wrong is told
manifests, audio_files         what is written
splits, languages              which set an utterance is in, which language a name stands for
voices, backgrounds            recordings in packages that the mini corpora are made of; folders of noise, music and rooms
synthesis                      engines that speak, vocode or simulate, for the mini corpora
shortcuts                      whether the files of a mini corpus give their class away
"""
