"""The servers that Ramify calls: LLM, encoders and rerankers, over one HTTP client and one gate. Knows no job."""
