(new_expression type: (_) @call)
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base)
(parameter_declaration type: (_) @as declarator: (reference_declarator (identifier) @name))
(init_declarator declarator: (identifier) @name value: [(call_expression) (new_expression)] @from)
(field_declaration type: (_) @as declarator: (reference_declarator (field_identifier) @field))
[(class_specifier) (namespace_definition) (alias_declaration) (concept_definition)] @definition
