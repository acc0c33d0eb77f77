package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"slices"
)

// maxColors is what a byte per pixel can name.
const maxColors = 256

// tint is a colour and how many pixels have it.
type tint struct {
	channel [3]uint8
	pixels  int
}

// shrink writes a screenshot with 256 colours chosen by median cut: a page is
// mostly flat, so that it loses nothing to see and two thirds of its bytes.
func shrink(shot []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	boxes := [][]tint{tintsOf(full)}
	for len(boxes) < maxColors {
		i, axis := widest(boxes)
		if i < 0 {
			break
		}
		one, other := halve(boxes[i], axis)
		boxes[i] = one
		boxes = append(boxes, other)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&small, paint(full, boxes))
	return small.Bytes(), err
}

func tintsOf(full image.Image) []tint {
	counts := make(map[[3]uint8]int)
	each(full, func(_, _ int, c [3]uint8) { counts[c]++ })
	tints := make([]tint, 0, len(counts))
	for c, n := range counts {
		tints = append(tints, tint{c, n})
	}
	slices.SortFunc(tints, func(a, b tint) int { return slices.Compare(a.channel[:], b.channel[:]) })
	return tints
}

func each(full image.Image, see func(x, y int, c [3]uint8)) {
	bounds := full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := full.At(x, y).RGBA()
			see(x, y, [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)})
		}
	}
}

// widest is the box whose colours differ most, and in what; -1 if none differ.
func widest(boxes [][]tint) (box, axis int) {
	box, best := -1, 0
	for i, tints := range boxes {
		for a := range 3 {
			low, high := uint8(255), uint8(0)
			for _, t := range tints {
				low, high = min(low, t.channel[a]), max(high, t.channel[a])
			}
			if spread := int(high) - int(low); spread > best {
				box, axis, best = i, a, spread
			}
		}
	}
	return box, axis
}

// halve cuts a box where half of its pixels lie on either side.
func halve(tints []tint, axis int) (one, other []tint) {
	slices.SortStableFunc(tints, func(a, b tint) int { return cmp.Compare(a.channel[axis], b.channel[axis]) })
	total := 0
	for _, t := range tints {
		total += t.pixels
	}
	cut, seen := 1, tints[0].pixels
	for cut < len(tints)-1 && seen < total/2 {
		seen += tints[cut].pixels
		cut++
	}
	return tints[:cut], tints[cut:]
}

// paint draws the picture with one colour per box: the mean of its pixels.
func paint(full image.Image, boxes [][]tint) *image.Paletted {
	index := make(map[[3]uint8]uint8)
	palette := make(color.Palette, 0, len(boxes))
	for i, tints := range boxes {
		var sum [3]int
		pixels := 0
		for _, t := range tints {
			index[t.channel] = uint8(i)
			pixels += t.pixels
			for a := range 3 {
				sum[a] += int(t.channel[a]) * t.pixels
			}
		}
		palette = append(palette, color.RGBA{uint8(sum[0] / pixels), uint8(sum[1] / pixels), uint8(sum[2] / pixels), 255})
	}
	small := image.NewPaletted(full.Bounds(), palette)
	each(full, func(x, y int, c [3]uint8) { small.SetColorIndex(x, y, index[c]) })
	return small
}
