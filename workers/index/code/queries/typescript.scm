(extends_clause value: [(identifier) (member_expression)] @base)
(implements_clause [(type_identifier) (generic_type) (nested_type_identifier)] @base)
(extends_type_clause type: [(type_identifier) (generic_type)] @base)
[(type_annotation) (type_arguments) (as_expression)] @type
(type_alias_declaration value: (_) @type)
(required_parameter pattern: (identifier) @name type: (type_annotation) @as)
(optional_parameter pattern: (identifier) @name type: (type_annotation) @as)
(required_parameter (accessibility_modifier) pattern: (identifier) @field type: (type_annotation) @as)
(variable_declarator name: (identifier) @name type: (type_annotation) @as)
(public_field_definition name: (property_identifier) @field type: (type_annotation) @as)
(public_field_definition name: (property_identifier) @field value: (new_expression) @from)
(property_signature name: (property_identifier) @field type: (type_annotation) @as)
(function_declaration return_type: (type_annotation) @returns)
(method_definition return_type: (type_annotation) @returns)
[(abstract_class_declaration) (interface_declaration) (type_alias_declaration) (enum_declaration)] @definition
[(internal_module) (module) (method_signature) (abstract_method_signature) (function_signature)] @definition
(public_field_definition value: [(arrow_function) (function_expression)]) @definition
[(abstract_class_declaration (decorator) @decorator) (class_body (decorator) @decorator)]
