package config

import (
	"fmt"
	"slices"
	"strings"
)

// suggest names the known name nearest to an unknown one, or nothing when none
// is near: a wrong guess helps nobody. A name that was cut short is near the one
// that begins so.
func suggest(unknown string, known []string) string {
	slices.Sort(known)
	longer := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !strings.HasPrefix(name, unknown) })
	if len(longer) == 1 {
		return fmt.Sprintf(", did you mean %s?", longer[0])
	}
	best, least := "", max(2, len(unknown)/3)+1
	for _, name := range known {
		if d := editDistance(unknown, name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s?", best)
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
