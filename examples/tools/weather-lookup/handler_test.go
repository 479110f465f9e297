package weatherlookup

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"voicegw/registry"
)

func TestForecast(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer test" || r.FormValue("city") != "Oslo" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `{"days": [{"date": "2026-11-23", "degrees": -2}]}`)
	}))
	defer service.Close()
	needs := Needs{Settings: Settings{APIKey: registry.NewSecret("test"), BaseURL: service.URL, Timeout: time.Minute}}

	result, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: Args{City: "Oslo", Days: 1}, Needs: needs})
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Data.(Output).Days; len(got) != 1 || got[0].Degrees != -2 {
		t.Errorf("got %+v", got)
	}

	_, err = Execute(t.Context(), registry.Call[Args, Needs]{Args: Args{City: "Osl", Days: 1}, Needs: needs})
	var told *registry.ToolError
	if !errors.As(err, &told) || told.Type != registry.ErrorNotFound {
		t.Errorf("ended with %v", err)
	}
}
