package textutil

import "strings"

// maxWord is the longest word, in bytes, that is compared.
const maxWord = 64

// Nearest returns the known word that word probably misspells, or "" if none is near: at most three letters differ, or a
// quarter of a long word, and no more than half of a short one. It ignores case. Of equally near words it returns the
// first.
func Nearest(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, least := "", max(min(3, len(word)/2), len(word)/4)+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k), least); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b in bytes, or limit if it is not less.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return min(row[len(b)], limit)
}
