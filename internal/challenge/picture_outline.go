package challenge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// size of the symbols before bending, in pixels per em.
const size = 72

// stride is the longest straight part of an outline, in pixels. It is short
// enough to look round after bending.
const stride = 3

// parseFaces reads the Go fonts, which have Go's own licence. Two fonts draw the
// same letters differently, so one set of templates is not enough for a robot.
func parseFaces() ([]*sfnt.Font, error) {
	var faces []*sfnt.Font
	for _, file := range [][]byte{gobold.TTF, gomonobold.TTF} {
		face, err := sfnt.Parse(file)
		if err != nil {
			return nil, fmt.Errorf("parse a font: %w", err)
		}
		faces = append(faces, face)
	}
	return faces, nil
}

// plain are symbols for the first font only. In the second, M and W are as narrow
// as an I, and F has a foot that makes it look like an E.
const plain = "FMW"

// face chooses the font of a symbol.
func (p *Pen) face(symbol rune, dice *rand.Rand) *sfnt.Font {
	if strings.ContainsRune(plain, symbol) {
		return p.faces[0]
	}
	return p.faces[dice.IntN(len(p.faces))]
}

// outline returns a symbol's shape as short straight lines.
func outline(face *sfnt.Font, buffer *sfnt.Buffer, symbol rune) ([]contour, error) {
	glyph, err := face.GlyphIndex(buffer, symbol)
	if err != nil {
		return nil, fmt.Errorf("find %q: %w", symbol, err)
	}
	if glyph == 0 {
		return nil, fmt.Errorf("find %q: not in the font", symbol)
	}
	segments, err := face.LoadGlyph(buffer, glyph, fixed.I(size), nil)
	if err != nil {
		return nil, fmt.Errorf("load %q: %w", symbol, err)
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("load %q: nothing to see", symbol)
	}
	var contours []contour
	var at point
	for _, segment := range segments {
		var bend []point
		switch segment.Op {
		case sfnt.SegmentOpMoveTo:
			at = pixels(segment.Args[0])
			contours = append(contours, contour{at})
			continue
		case sfnt.SegmentOpLineTo:
			bend = []point{at, pixels(segment.Args[0])}
		case sfnt.SegmentOpQuadTo:
			bend = []point{at, pixels(segment.Args[0]), pixels(segment.Args[1])}
		case sfnt.SegmentOpCubeTo:
			bend = []point{at, pixels(segment.Args[0]), pixels(segment.Args[1]), pixels(segment.Args[2])}
		}
		last := len(contours) - 1
		contours[last] = appendCurve(contours[last], bend)
		at = bend[len(bend)-1]
	}
	return contours, nil
}

func pixels(p fixed.Point26_6) point {
	return point{float64(p.X) / 64, float64(p.Y) / 64}
}

// appendCurve appends a Bézier curve of any degree, without its first point.
func appendCurve(line []point, control []point) []point {
	var length float64
	for i, p := range control[1:] {
		length += math.Hypot(p.x-control[i].x, p.y-control[i].y)
	}
	parts := max(1, int(math.Ceil(length/stride)))
	for part := 1; part <= parts; part++ {
		line = append(line, along(control, float64(part)/float64(parts)))
	}
	return line
}

// along returns the point at t of a Bézier curve (de Casteljau's algorithm).
func along(control []point, t float64) point {
	var space [4]point
	left := append(space[:0], control...)
	for ; len(left) > 1; left = left[:len(left)-1] {
		for i := range len(left) - 1 {
			left[i] = point{left[i].x + t*(left[i+1].x-left[i].x), left[i].y + t*(left[i+1].y-left[i].y)}
		}
	}
	return left[0]
}
