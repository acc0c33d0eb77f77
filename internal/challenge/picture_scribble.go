package challenge

import (
	"math"
	"math/rand/v2"
)

// Strokes and specks have the colour of the symbols, so that a program cannot
// separate them by colour. People separate them by width: stems of symbols are
// about 10 pixels wide.
const (
	strokes                 = 3
	leastStroke, mostStroke = 2.0, 3.2 // pixels wide
	strokeMargin            = 8.0      // pixels from the upper and the lower edge

	specks                = 36
	leastSpeck, mostSpeck = 2.0, 4.5 // pixels wide and high
	speckCorners          = 6
)

// scribble makes the strokes and specks over the symbols.
func scribble(dice *rand.Rand) []contour {
	contours := make([]contour, 0, strokes+specks)
	for range strokes {
		contours = append(contours, stroke(dice))
	}
	for range specks {
		contours = append(contours, speck(dice))
	}
	return contours
}

// stroke is a bent ribbon from the left quarter of the picture to the right one.
func stroke(dice *rand.Rand) contour {
	var control [4]point
	for quarter := range control {
		control[quarter] = point{
			between(dice, float64(quarter)*width/4, float64(quarter+1)*width/4),
			between(dice, strokeMargin, height-strokeMargin),
		}
	}
	spine := appendCurve(control[:1:1], control[:])
	half := between(dice, leastStroke, mostStroke) / 2
	ribbon := make(contour, 2*len(spine))
	for i, p := range spine {
		before, after := spine[max(i-1, 0)], spine[min(i+1, len(spine)-1)]
		ahead := math.Hypot(after.x-before.x, after.y-before.y)
		aside := point{(before.y - after.y) / ahead * half, (after.x - before.x) / ahead * half}
		ribbon[i] = point{p.x - aside.x, p.y - aside.y}
		ribbon[len(ribbon)-1-i] = point{p.x + aside.x, p.y + aside.y}
	}
	return ribbon
}

// speck is a small blot. Its winding is that of strokes.
func speck(dice *rand.Rand) contour {
	at := point{between(dice, 0, width), between(dice, 0, height)}
	wide, tall := between(dice, leastSpeck, mostSpeck)/2, between(dice, leastSpeck, mostSpeck)/2
	blot := make(contour, speckCorners)
	for i := range blot {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / speckCorners)
		blot[i] = point{at.x + wide*cos, at.y + tall*sin}
	}
	return blot
}
