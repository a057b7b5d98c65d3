// Colour scales that the colour-blind can read too: stops taken from matplotlib's viridis and cividis.

const VIRIDIS = ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"];
const CIVIDIS = ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "f3da4c", "fee838"];
// Okabe and Ito's palette, for things that have no order.
const CATEGORIES = ["0072b2", "e69f00", "009e73", "cc79a7", "56b4e9", "d55e00", "f0e442", "999999"];

// Depths 0 to 8, the same in every figure; what is deeper needs a scale.
const DEPTHS = ["8c8c8c", "d2efbc", "35c3dd", "2f78d8", "261690", "f7cf33", "ef8647", "a32a17", "660a62"];

const channels = (hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** A function from a share in [0, 1] to [red, green, blue]. */
function scaleOf(stops) {
  const colours = stops.map(channels);
  return (share) => {
    const place = Math.min(1, Math.max(0, share)) * (colours.length - 1);
    const below = Math.min(colours.length - 2, Math.floor(place));
    return colours[below].map((low, i) => Math.round(low + (place - below) * (colours[below + 1][i] - low)));
  };
}

const viridis = scaleOf(VIRIDIS);
const cividis = scaleOf(CIVIDIS);
const css = ([red, green, blue]) => `rgb(${red}, ${green}, ${blue})`;
const isBright = ([red, green, blue]) => 0.299 * red + 0.587 * green + 0.114 * blue > 128;
