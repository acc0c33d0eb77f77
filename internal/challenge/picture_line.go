package challenge

import (
	"errors"
	"math"
	"math/rand/v2"

	"golang.org/x/image/font/sfnt"
)

// Random changes of each symbol. They are small enough that people can read it and
// do not confuse 6 and 9.
const (
	turn              = 0.28       // radians in both directions
	smallest, largest = 0.88, 1.15 // times size
	narrowest, widest = 0.88, 1.12 // times its own width
	lift              = 6.0        // pixels up or down
	leastLap, mostLap = 0.8, 2.4   // pixels of overlap with the symbol before
	nest              = 9.0        // pixels that it may go beneath the symbol before
)

// Random changes of the whole line, in pixels. The shear is in pixels sideways per
// pixel down. Waves are longer than a symbol is wide and high, so that they bend
// symbols.
const (
	shear                       = 0.2
	lowestWave, highestWave     = 3.0, 7.0
	shortestWave, longestWave   = 150.0, 240.0
	leastSway, mostSway         = 1.5, 3.5
	shortestSway, longestSway   = 70.0, 110.0
	margin                      = 5.0 // without symbols
	mostEnlarged, mostStretched = 1.15, 1.35
)

// write lays out symbols as one bent line within the picture.
func (p *Pen) write(symbols string, dice *rand.Rand) ([]contour, error) {
	var line, before []contour
	var buffer sfnt.Buffer
	slant := between(dice, -shear, shear)
	for _, symbol := range symbols {
		shape, err := outline(p.face(symbol, dice), &buffer, symbol)
		if err != nil {
			return nil, err
		}
		tilt(shape, slant, dice)
		join(before, shape, between(dice, leastLap, mostLap), nest)
		line = append(line, shape...)
		before = shape
	}
	if len(line) == 0 {
		return nil, errors.New("nothing to draw")
	}
	bend(line, dice)
	fit(line, dice)
	return line, nil
}

// tilt rotates, scales, lifts and slants one symbol about its middle.
func tilt(shape []contour, slant float64, dice *rand.Rand) {
	box := boundsOf(shape)
	middle := point{(box.left + box.right) / 2, (box.top + box.bottom) / 2}
	sin, cos := math.Sincos(between(dice, -turn, turn))
	tall := between(dice, smallest, largest)
	wide := tall * between(dice, narrowest, widest)
	rise := between(dice, -lift, lift)
	move(shape, func(p point) point {
		x, y := (p.x-middle.x)*wide, (p.y-middle.y)*tall
		x, y = x*cos-y*sin, x*sin+y*cos+rise
		return point{x + slant*y, y}
	})
}

// bend applies two slow waves to the line, one vertical and one horizontal. After
// it, no row is a baseline and no stem is straight.
func bend(line []contour, dice *rand.Rand) {
	wave := sine(dice, lowestWave, highestWave, shortestWave, longestWave)
	sway := sine(dice, leastSway, mostSway, shortestSway, longestSway)
	move(line, func(p point) point { return point{p.x + sway(p.y), p.y + wave(p.x)} })
}

// sine returns a wave of random amplitude, length and phase.
func sine(dice *rand.Rand, lowest, highest, shortest, longest float64) func(float64) float64 {
	amplitude := between(dice, lowest, highest)
	pace := 2 * math.Pi / between(dice, shortest, longest)
	phase := between(dice, 0, 2*math.Pi)
	return func(at float64) float64 { return amplitude * math.Sin(at*pace+phase) }
}

// fit makes the line as large as the picture allows, up to a bound, and moves it
// to a random place.
func fit(line []contour, dice *rand.Rand) {
	const roomX, roomY = width - 2*margin, height - 2*margin
	box := boundsOf(line)
	across, down := box.right-box.left, box.bottom-box.top
	scaleY := min(mostEnlarged, roomX/across, roomY/down)
	scaleX := min(scaleY*mostStretched, roomX/across)
	x := margin + dice.Float64()*(roomX-scaleX*across)
	y := margin + dice.Float64()*(roomY-scaleY*down)
	move(line, func(p point) point {
		return point{x + (p.x-box.left)*scaleX, y + (p.y-box.top)*scaleY}
	})
}

func between(dice *rand.Rand, least, most float64) float64 {
	return least + dice.Float64()*(most-least)
}
