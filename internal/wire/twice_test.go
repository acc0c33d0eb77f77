package wire

import (
	"encoding/json"
	"testing"
)

func TestTwiceFindsAMemberThatIsGivenTwice(t *testing.T) {
	for object, want := range map[string]string{
		`{}`:                               "",
		`{"a":1,"b":2}`:                    "",
		`{"a":{"b":1,"b":2},"b":[1,1]}`:    "", // what is inside is not read
		`{"a":1,"b":2,"a":1}`:              "a",
		`{"quantity":1,"Quantity":2}`:      "Quantity",
		`{"quantity":1,"quantit\u0079":2}`: "quantity",
		`{"tasks":1,"tas\u212a\u017f":2}`:  "tas\u212a\u017f",
		`{"订单":1,"订单":2}`:                  "订单",
	} {
		name, twice := Twice([]byte(object))
		if name != want || twice != (want != "") {
			t.Errorf("%s: %q, %v", object, name, twice)
		}
	}
}

// A name that the decoder takes for a field is the field's name to Twice.
func FuzzTwice(f *testing.F) {
	for _, name := range []string{"Quantity", "task", "tas\u212a", "ta\u017fk", "\xff", "\u0130"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		quoted, err := json.Marshal(name)
		if err != nil {
			return
		}
		for _, field := range []string{"quantity", "task", "ref"} {
			var read struct{ Quantity, Task, Ref int }
			if err := json.Unmarshal([]byte(`{`+string(quoted)+`:7}`), &read); err != nil {
				t.Fatal(err)
			}
			taken := map[string]int{"quantity": read.Quantity, "task": read.Task, "ref": read.Ref}[field] == 7
			if _, twice := Twice([]byte(`{"` + field + `":1,` + string(quoted) + `:7}`)); twice != taken {
				t.Errorf("%q beside %q: twice is %v, the decoder takes it: %v", name, field, twice, taken)
			}
		}
	})
}
