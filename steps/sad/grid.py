"""The grid of Figure 7 (Heitkaemper et al. 2020, section 4.2): segment RNNs of other segment lengths and shifts."""
from dataclasses import replace

from pyspeech.files import write_json
from steps.sad.options import cells
from steps.sad.systems import SMOOTHINGS
from steps.sad.train import sweep_dev, train_network


def train_grid(exp, conf):
    """grid.json: [{length, shift (frames), dcf: {collar: the lowest DCF on dev over the thresholds, a fraction}}, ...].

    A cell is trained as the network of the table is, in training/grid/<length>_<shift>, where it stays: what a stage that
    was killed has trained is not trained again. The cell of the table's own length and shift is that network.
    """
    own = (conf.network.segment_length, conf.network.segment_shift)
    rows = []
    for number, (length, shift) in enumerate(cells(conf.grid), start=1):
        folder = exp.dir / "training" / ("seg_rnn" if (length, shift) == own else f"grid/{length}_{shift}")
        if not (folder / "model.pt").exists():
            exp.log.info("cell %d of %d: length %d, shift %d", number, len(cells(conf.grid)), length, shift)
            network = replace(conf.network, temporal="seg_rnn", segment_length=length, segment_shift=shift)
            train_network(exp, conf, network, folder, SMOOTHINGS["seg_rnn"][0])
        rows.append({"length": length, "shift": shift, "dcf": measure(exp, folder, conf.collars)})
        exp.log.info("length %d, shift %d: dev DCF %s", length, shift,
                     ", ".join(f"{100 * dcf:.2f} % (collar {collar} s)" for collar, dcf in rows[-1]["dcf"].items()))
    write_json(exp.dir / "grid.json", rows)


def measure(exp, folder, collars):
    """{collar: the lowest DCF on dev over the thresholds} of the segment RNN in a folder."""
    from pyspeech.compat import default_device
    from pyspeech.sad.checkpoint import load_model

    found = sweep_dev(exp, load_model(folder, default_device()), SMOOTHINGS["seg_rnn"][0], collars)
    return {f"{collar:g}": sweep.best_dcf for collar, sweep in zip(collars, found)}
