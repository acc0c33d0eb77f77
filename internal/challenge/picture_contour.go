package challenge

import "math"

type point struct{ x, y float64 }

// contour is a closed line.
type contour []point

func move(contours []contour, to func(point) point) {
	for _, c := range contours {
		for i, p := range c {
			c[i] = to(p)
		}
	}
}

type bounds struct{ left, top, right, bottom float64 }

func boundsOf(contours []contour) bounds {
	box := bounds{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, c := range contours {
		for _, p := range c {
			box = bounds{min(box.left, p.x), min(box.top, p.y), max(box.right, p.x), max(box.bottom, p.y)}
		}
	}
	return box
}

// join moves shape to the right of the shape before it, until they overlap by lap
// pixels in the row where they meet first. If one shape overhangs the other, as a
// 7 overhangs a 4, join moves it beneath by at most nest pixels; the shapes may
// then not touch.
func join(before, shape []contour, lap, nest float64) {
	if before == nil {
		return
	}
	ends, begins := edgesOf(before), edgesOf(shape)
	shift := boundsOf(before).right - nest - boundsOf(shape).left
	for row := range ends {
		shift = max(shift, ends[row].right-begins[row].left-lap)
	}
	move(shape, func(p point) point { return point{p.x + shift, p.y} })
}

// edges are the left and right end of a shape in a row. A row without ink has
// left = +∞ and right = −∞, so it overlaps nothing.
type edges struct{ left, right float64 }

// edgesOf returns the edges in rows of one pixel.
func edgesOf(shape []contour) (rows [2 * height]edges) {
	for row := range rows {
		rows[row] = edges{math.Inf(1), math.Inf(-1)}
	}
	for _, c := range shape {
		from := c[len(c)-1]
		for _, to := range c {
			top, bottom := from, to
			if top.y > bottom.y {
				top, bottom = bottom, top
			}
			for y := math.Ceil(top.y); y < bottom.y; y++ {
				x := top.x + (bottom.x-top.x)*(y-top.y)/(bottom.y-top.y)
				row := &rows[int(y)+height]
				*row = edges{min(row.left, x), max(row.right, x)}
			}
			from = to
		}
	}
	return rows
}
