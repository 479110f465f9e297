// Package extractcontacts implements the tool extract_contacts.
package extractcontacts

import (
	"context"
	"strings"

	"voicegw/internal/backends/contacts"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Needs are the capabilities of extract_contacts.
type Needs struct {
	Contacts *contacts.Extractor
}

// Execute extracts the contacts. The data of a success is a contacts.Contacts.
func Execute(ctx context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	region := ""
	if call.Args.DefaultRegion != nil {
		region = strings.ToUpper(*call.Args.DefaultRegion)
		if !call.Needs.Contacts.HasRegion(region) {
			return registry.Result{}, registry.Invalid([]document.Problem{{
				Path: "/default_region", Message: "Give the ISO 3166 code of a country, such as DE, GB or US, or omit it.",
			}}, "%s is not a country with phone numbers.", region)
		}
	}
	if err := ctx.Err(); err != nil {
		return registry.Result{}, err
	}
	return registry.Result{Data: call.Needs.Contacts.Extract(call.Args.Text, region)}, nil
}
