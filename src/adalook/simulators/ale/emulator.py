"""One ALE emulator: plays an action for some frames and shows them as one."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

from adalook._extras import import_extra
from adalook.errors import ArgumentError, MissingExtraError
from adalook.simulators.ale.frames import FrameConverter
from adalook.storage.serializer import damaged_error


class Emulator:
    """A game in an emulator of its own.

    `play` and `begin` set `frame` (84, 84), which the next call overwrites, `lives` and `episode_over`. A game that is
    over stands still, screen and all, so playing out the rest of a step changes nothing.
    """

    def __init__(self, game: str, frame_skip: int) -> None:
        self.rom = rom_of(game)
        ale_py = import_extra("ale_py", extra="search", purpose=f"the game {game}")
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        ale = ale_py.ALEInterface()
        ale.setFloat("repeat_action_probability", 0.0)
        ale.setInt("random_seed", 0)
        ale.loadROM(ale_py.roms.get_rom_path(self.rom))
        self._switched_on = ale.cloneState()
        self._ale = ale
        self._make_state = ale_py.ALEState
        self._hidden_frames = max(frame_skip - 2, 0)
        self._shown_frames = min(frame_skip, 2)
        self._converter = FrameConverter(*ale.getScreenDims())
        self._noop = ale_py.Action.NOOP
        self.actions: list[Any] = ale.getMinimalActionSet()
        self.frame = self._converter.frame
        self.lives = 0
        self.episode_over = False
        self._at: Any = None
        """The state that the machine is in, if it is known: restoring it is nothing to do."""

    def begin(self, noops: int, anew: bool) -> None:
        """Start an episode with `noops` frames of doing nothing; anew: as if the console had just been switched on.

        The machine's memory starts out random, by a generator that its state includes.
        """
        ale, self._at = self._ale, None
        if anew:
            ale.restoreState(self._switched_on)
        ale.reset_game()
        for _ in range(noops):
            ale.act(self._noop)
            if ale.game_over():
                ale.reset_game()
        self._capture(0)
        self._capture(1)
        self._converter.resize()
        self.lives, self.episode_over = ale.lives(), False

    def play(self, action: int) -> int:
        """Repeat action number `action` for the frames of one step, and return the score it brought."""
        ale, code = self._ale, self.actions[action]
        act, self._at = ale.act, None
        score: int = 0
        for _ in range(self._hidden_frames):
            score += act(code)
        score += act(code)
        self._capture(0)
        if self._shown_frames == 2:
            score += act(code)
        self._capture(1)
        self._converter.resize()
        self.lives, self.episode_over = ale.lives(), ale.game_over()
        return score

    def _capture(self, slot: int) -> None:
        """Take the screen into one of the two slots of the next frame."""
        converter = self._converter
        self._ale.getScreen(converter.screen)
        if not converter.capture(slot):
            converter.learn_greys(slot, self._ale.getScreenGrayscale())

    def save(self) -> Any:
        """Return the machine's state, an `ale_py.ALEState` that never changes."""
        self._at = self._ale.cloneState()
        return self._at

    def restore(self, state: Any) -> None:
        """Put the machine into `state`; `frame` is stale until the next `play`."""
        if state is not self._at:
            self._ale.restoreState(state)
            self._at = state

    def unpack(self, data: bytes) -> Any:
        """Return the state that serialised to `data`; the machine is put into it, to see whether it keeps it."""
        self._at = None
        try:
            state = self._make_state(data)
            self._ale.restoreState(state)
            kept = self._ale.cloneState().serialize() == data
        except (RuntimeError, ValueError, TypeError, SystemError, MemoryError) as error:  # nanobind's are SystemErrors
            self._ale.restoreState(self._switched_on)  # half of a state may be in it
            raise damaged_error("Atari state", "what pack made", f"a machine that ALE refuses ({error})") from error
        if not kept:
            raise damaged_error("Atari state", "what pack made", "a machine that ALE does not keep")
        return state


@cache
def _roms() -> dict[str, str]:
    """Return the ROM of each name in ids, for the games one person can play."""
    ale_py = import_extra("ale_py", extra="search", purpose="an Atari game")
    names = {rom.title().replace("_", ""): rom for rom in ale_py.roms.get_all_rom_ids()}
    supported = ale_py.ALEInterface.isSupportedROM
    return {name: rom for name, rom in names.items() if supported(ale_py.roms.get_rom_path(rom)) is not None}


def atari_ids() -> list[str]:
    """Return the ids of all games, none if ale-py is not installed."""
    try:
        return [f"ALE/{name}-v5" for name in _roms()]
    except MissingExtraError:
        return []


def rom_of(game: str) -> str:
    """Return the ROM of an id such as ALE/VideoPinball-v5."""
    name = str(game).removeprefix("ALE/").removesuffix("-v5")
    rom = _roms().get(name)
    if rom is None:
        near = difflib.get_close_matches(name, _roms(), n=3) or list(_roms())[:5]
        raise ArgumentError(f"ALE has no game '{game}'", expected=", ".join(f"ALE/{name}-v5" for name in near))
    return rom
