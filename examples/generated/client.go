// Every route of the Runtime Contract, with a client that oapi-codegen has made.
//
//	curl -s 127.0.0.1:8080/openapi.json > openapi.json
//	go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 \
//	    -generate types,client -package main -o weir.gen.go openapi.json
//	go mod init client && go mod tidy && go run . http://127.0.0.1:8080
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func status(answer *http.Response, err error) int {
	defer must(answer, err).Body.Close()
	return answer.StatusCode
}

func input(text string) InvokeRequest {
	var request InvokeRequest
	if err := request.Input.FromInvokeRequestInput0(text); err != nil {
		log.Fatal(err)
	}
	return request
}

func main() {
	ctx := context.Background()
	// With AGENT_AUTH_TOKEN: WithRequestEditorFn sets the header authorization.
	client := must(NewClientWithResponses(os.Args[1]))

	fmt.Println("getHealth", must(client.GetHealthWithResponse(ctx)).JSON200.Status)
	fmt.Println("getHealthHead", status(client.GetHealthHead(ctx)))
	fmt.Println("getOpenAPI", must(client.GetOpenAPIWithResponse(ctx, nil)).JSON200.Openapi)
	fmt.Println("getOpenAPIHead", status(client.GetOpenAPIHead(ctx, nil)))
	fmt.Println("getAgentCard", must(client.GetAgentCardWithResponse(ctx, nil)).JSON200.Name)
	fmt.Println("getAgentCardHead", status(client.GetAgentCardHead(ctx, nil)))

	stream := must(client.StreamAgentWithResponse(ctx, nil, input("two days in Kyoto")))
	lines := strings.Split(strings.TrimSpace(string(stream.Body)), "\n")
	fmt.Println("streamAgent", lines[len(lines)-1])

	// The demo asks a person before it books.
	turn := must(client.InvokeAgentWithResponse(ctx, nil, input("book the trip"))).JSON200
	fmt.Println("invokeAgent", turn.Metadata.Approval.Question)
	answer := ResumeRequest{ThreadId: turn.SessionId, HumanInput: "yes"}
	output := must(must(client.ResumeAgentWithResponse(ctx, nil, answer)).JSON200.Output.AsInvokeResponseOutput0())
	fmt.Println("resumeAgent", output)
}
